// SPDX-License-Identifier: Apache-2.0
// Building of unwind tables, lookups in them, and walks. The files are the
// machine's own: those of kFiles that are installed.

#include <benchmark/benchmark.h>
#include <sys/stat.h>
#include <ucontext.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/unwind/function_ranges.h"
#include "ksym/unwind/stack_walk.h"
#include "ksym/unwind/unwind_table.h"
#include "tests/ksym/unwind/loaded_code.h"

// glibc says here where the stack was when the program began.
extern "C" void* __libc_stack_end;  // NOLINT

namespace ksym {
namespace {

constexpr std::array kFiles = {
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/bin/python3",
    "/usr/bin/node",
    "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
    "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
    "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14",
    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
};

Result<UnwindTable> Load(const std::string& path) {
  auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return FailErrno(errno, path);
  const auto source =
      ByteSource::OfFile(std::move(*fd), static_cast<uint64_t>(status.st_size));
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  return BuildUnwindTable(source, *image);
}

// Time to a table, from the path.
void Build(benchmark::State& state, const std::string& path) {
  UnwindTable table;
  for (auto unused : state) {
    auto built = Load(path);
    if (!built) {
      state.SkipWithError(built.error().message().c_str());
      return;
    }
    table = std::move(*built);
  }
  const auto rows = static_cast<double>(table.rows.size());
  state.counters["fdes"] = table.counts.fdes;
  state.counters["bad"] = table.counts.bad_fdes;
  state.counters["unsupported"] = table.counts.unsupported_rows;
  state.counters["rows"] = rows;
  state.counters["row_bytes"] = sizeof(UnwindRow);
  state.counters["rows/fde"] = rows / table.counts.fdes;
}

// Time to where functions begin, from the path.
void ReadFunctions(benchmark::State& state, const std::string& path) {
  FunctionRanges functions;
  for (auto unused : state) {
    auto fd = OpenForRead(path);
    struct stat status = {};
    if (!fd || ::fstat(fd->get(), &status) != 0) {
      state.SkipWithError("cannot be opened");
      return;
    }
    auto read = FunctionRanges::Load(ByteSource::OfFile(
        std::move(*fd), static_cast<uint64_t>(status.st_size)));
    if (!read) {
      state.SkipWithError(read.error().message().c_str());
      return;
    }
    functions = std::move(*read);
  }
  state.counters["functions"] = static_cast<double>(functions.size());
  state.counters["bytes"] = static_cast<double>(functions.memory_bytes());
}

// One lookup at a random place.
void FindRow(benchmark::State& state, const std::string& path) {
  const auto table = Load(path);
  if (!table) {
    state.SkipWithError(table.error().message().c_str());
    return;
  }
  constexpr size_t kLookups = 4096;
  std::vector<uint64_t> places(kLookups);
  std::minstd_rand random(1);
  for (uint64_t& place : places) place = random() % table->size;
  size_t next = 0;
  for (auto unused : state) {
    benchmark::DoNotOptimize(FindUnwindRow(*table, places[next]));
    next = (next + 1) % kLookups;
  }
}

// One stack of the benchmark itself: `depth` frames, called back from the C
// library's sort, up to _start.
struct Captured {
  std::vector<std::byte> bytes;
  StackPart part;
  StackCopy copy;
};

Captured* g_captured;

[[gnu::noinline]] int Capture(int depth) {
  volatile int local = depth;
  if (depth > 0) return Capture(depth - 1) + local;
  ucontext_t context;
  ::getcontext(&context);
  const greg_t* r = context.uc_mcontext.gregs;
  StackCopy& copy = g_captured->copy;
  const auto set = [&](X86Register number, int index) {
    copy.registers[static_cast<size_t>(number)] =
        static_cast<uint64_t>(r[index]);
  };
  set(X86Register::kRsp, REG_RSP);
  set(X86Register::kRbp, REG_RBP);
  set(X86Register::kRbx, REG_RBX);
  copy.ip = {static_cast<uint64_t>(r[REG_RIP])};
  constexpr uint64_t kRedZone = 128;
  const uint64_t address = static_cast<uint64_t>(r[REG_RSP]) - kRedZone;
  const auto* start = reinterpret_cast<const std::byte*>(address);
  g_captured->bytes.assign(
      start, reinterpret_cast<const std::byte*>(__libc_stack_end));
  g_captured->part = {{address}, g_captured->bytes};
  copy.parts = {&g_captured->part, 1};
  return local;
}

int CaptureFromSort(const void* a, const void* b) {
  return Capture(*static_cast<const int*>(a) + *static_cast<const int*>(b));
}

void Walk(benchmark::State& state) {
  Captured captured;
  g_captured = &captured;
  const auto depth = static_cast<int>(state.range(0));
  int numbers[] = {depth, 0};
  std::qsort(numbers, std::size(numbers), sizeof(int), CaptureFromSort);
  const LoadedCode code;
  const std::function<CodeAt(Address)> find = [&](Address at) {
    return code.Find(at);
  };
  WalkedStack stack;
  for (auto unused : state) {
    WalkStack(captured.copy, 512, {.find = find}, stack);
    benchmark::DoNotOptimize(stack.frames.data());
  }
  if (stack.end != StackEnd::kOutermost) state.SkipWithError("cut off");
  state.counters["frames"] = static_cast<double>(stack.frames.size());
}
BENCHMARK(Walk)->Arg(0)->Arg(20)->Arg(100);

}  // namespace
}  // namespace ksym

int main(int argc, char** argv) {
  for (const std::string file : ksym::kFiles) {
    if (!std::filesystem::exists(file)) continue;
    const std::string name = std::filesystem::path(file).filename();
    benchmark::RegisterBenchmark(("Build/" + name).c_str(), ksym::Build, file)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("ReadFunctions/" + name).c_str(),
                                 ksym::ReadFunctions, file)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("FindRow/" + name).c_str(), ksym::FindRow,
                                 file);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
