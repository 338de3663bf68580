// SPDX-License-Identifier: Apache-2.0
// Loading of symbol tables, and lookups in them. The files are the machine's
// own: the C library, and the large ones among kFiles that are installed.

#include <benchmark/benchmark.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"

namespace ksym {
namespace {

constexpr std::array kFiles = {
    "/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3",
    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "/usr/bin/node"};

Result<ElfSymbols> Load(const std::string& path) {
  auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return FailErrno(errno, path);
  return ElfSymbols::Load(ByteSource::OfFile(
      std::move(*fd), static_cast<uint64_t>(status.st_size)));
}

// Time to a usable table, from the path.
void LoadTable(benchmark::State& state, const std::string& path) {
  size_t bytes = 0;
  size_t symbols = 0;
  for (auto _ : state) {
    const auto loaded = Load(path);
    if (!loaded) {
      state.SkipWithError(loaded.error().message().c_str());
      return;
    }
    bytes = loaded->memory_bytes();
    symbols = loaded->symbol_count();
  }
  state.counters["symbols"] = static_cast<double>(symbols);
  state.counters["bytes_per_symbol"] =
      static_cast<double>(bytes) / static_cast<double>(symbols);
}

std::vector<FileOffset> RandomOffsets(const ElfSymbols& symbols) {
  std::mt19937_64 random(1);
  std::vector<FileOffset> offsets(4096);
  std::vector<ElfSegment> code;
  for (const ElfSegment& segment : symbols.segments()) {
    if (segment.executable) code.push_back(segment);
  }
  for (size_t i = 0; i < offsets.size() && !code.empty(); ++i) {
    const ElfSegment& segment = code[i % code.size()];
    offsets[i] = segment.file_offset + random() % segment.file_size;
  }
  return offsets;
}

// Offset to symbol, without its name.
void Find(benchmark::State& state, const std::string& path) {
  const auto symbols = Load(path);
  if (!symbols) {
    state.SkipWithError(symbols.error().message().c_str());
    return;
  }
  const auto offsets = RandomOffsets(*symbols);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(symbols->Find(offsets[i++ % offsets.size()]));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

// Offset to name, read from the file each time: the first sight of a symbol.
void ReadName(benchmark::State& state, const std::string& path) {
  const auto symbols = Load(path);
  if (!symbols) {
    state.SkipWithError(symbols.error().message().c_str());
    return;
  }
  const auto offsets = RandomOffsets(*symbols);
  size_t i = 0;
  for (auto _ : state) {
    const auto match = symbols->Find(offsets[i++ % offsets.size()]);
    if (match) benchmark::DoNotOptimize(symbols->ReadName(*match));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

// Address to everything that is known of it, in the C library of this process,
// with names seen before: what a report does per frame.
void Resolve(benchmark::State& state) {
  ProcessImage image;
  image.id.pid = static_cast<uint32_t>(::getpid());
  auto mappings = ReadMaps(image.id.pid);
  if (!mappings) {
    state.SkipWithError(mappings.error().message().c_str());
    return;
  }
  image.mappings = std::move(*mappings);
  const Mapping* libc = image.Find({reinterpret_cast<uint64_t>(&::getpid)});
  if (libc == nullptr) {
    state.SkipWithError("the C library is not mapped");
    return;
  }
  std::mt19937_64 random(1);
  std::vector<Address> addresses(4096);
  for (Address& address : addresses) {
    address = libc->start + random() % (libc->end - libc->start);
  }
  Symbolizer symbolizer({});
  symbolizer.Pin(image);
  for (const Address address : addresses) symbolizer.Resolve(image, address);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        symbolizer.Resolve(image, addresses[i++ % addresses.size()]));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

// One read of this process's mappings.
void ReadOwnMaps(benchmark::State& state) {
  const auto pid = static_cast<uint32_t>(::getpid());
  for (auto _ : state) benchmark::DoNotOptimize(ReadMaps(pid));
}

}  // namespace
}  // namespace ksym

int main(int argc, char** argv) {
  for (const char* file : ksym::kFiles) {
    if (!std::filesystem::exists(file)) continue;
    const std::string name = std::filesystem::path(file).filename();
    benchmark::RegisterBenchmark(("LoadTable/" + name).c_str(), ksym::LoadTable,
                                 file)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("Find/" + name).c_str(), ksym::Find, file);
    benchmark::RegisterBenchmark(("ReadName/" + name).c_str(), ksym::ReadName,
                                 file);
  }
  benchmark::RegisterBenchmark("Resolve/own_libc", ksym::Resolve);
  benchmark::RegisterBenchmark("ReadMaps/own", ksym::ReadOwnMaps);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
