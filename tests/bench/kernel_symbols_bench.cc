// SPDX-License-Identifier: Apache-2.0
// Kernel symbol tables beside each other: the compact map, the blob, and the
// plain sorted vector of strings that most tools keep. On the running kernel's
// table (skipped when it hides its addresses) and on a Debian kernel's with
// modules and data symbols. Counters: bytes_per_symbol, peak_bytes. The compact
// map is loaded as the profiler does, with a thread that reads ahead, and by
// one thread alone.

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/naming/read_ahead.h"
#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_blob.h"
#include "ksym/kernel/kallsyms_blob_writer.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "tests/ksym/kernel/kernel_tables.h"

namespace {

// What the program has allocated, to tell a table's memory and what making it
// takes at most. A thread that reads ahead allocates too.
std::atomic<size_t> allocated = 0;
std::atomic<size_t> peak = 0;

void Count(size_t more) {
  const size_t now = allocated += more;
  // The reader's thread allocates next to nothing: no need to be exact.
  if (now > peak) peak = now;
}

size_t SizeOf(void* memory) {
  return memory == nullptr ? 0 : ::malloc_usable_size(memory);
}

}  // namespace

// The linker calls these instead of realloc and free (--wrap).
extern "C" {
void* __real_realloc(void* memory, size_t size);
void __real_free(void* memory);

void* __wrap_realloc(void* memory, size_t size) {
  const size_t before = SizeOf(memory);
  void* moved = __real_realloc(memory, size);
  if (moved == nullptr) std::abort();
  allocated -= before;
  Count(SizeOf(moved));
  return moved;
}

void __wrap_free(void* memory) {
  allocated -= SizeOf(memory);
  __real_free(memory);
}
}

// Not inlined: the compiler would see free() called on what new gave.
[[gnu::noinline]] void* operator new(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  Count(SizeOf(memory));
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace {

using ksym::Address;

constexpr size_t kQueries = size_t{1} << 16;

// The two listings: /proc/kallsyms itself, and a file of the other one.
struct Listing {
  std::string path;
  bool readable = false;
  std::vector<uint64_t> queries;  // random text addresses
};

std::string DebianPath() {
  static const std::string kPath = [] {
    char name[] = "/tmp/kallsyms-bench-XXXXXX";
    const ksym::UniqueFd fd(::mkstemp(name));
    if (!fd.valid() || !ksym::WriteAll(fd.get(), ksym_test::DebianTable())) {
      std::abort();
    }
    return std::string(name);
  }();
  return kPath;
}

// As the profiler does at its start: the kernel writes its listing on one CPU
// while another parses it. A file's bytes are there at once.
ksym::KernelSymbolOptions ProfilersOptions(const std::string& path) {
  ksym::KernelSymbolOptions options;
  if (path == ksym::kRunningKernelSymbols) {
    options.make_stream = profd::ReadAhead::Start;
  }
  return options;
}

Listing MakeListing(std::string path) {
  Listing listing;
  listing.path = std::move(path);
  const auto source = ksym::OpenKernelSymbols(listing.path);
  if (!source) return listing;
  const ksym::KernelSymbolMap* map = source->map();
  listing.readable = true;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ksym::SymbolNameBuffer buffer;
  map->ForEach(buffer, [&](const ksym::KernelSymbol& symbol) {
    const auto found = map->Find(symbol.start, buffer);
    if (found && found->start == symbol.start) {
      ranges.emplace_back(symbol.start.value, found->size);
    }
    return true;
  });
  std::mt19937_64 random(1);
  for (size_t i = 0; i < kQueries; ++i) {
    const auto [start, size] = ranges[random() % ranges.size()];
    listing.queries.push_back(start + random() % size);
  }
  return listing;
}

const Listing& GetListing(benchmark::State& state) {
  static const Listing kRunning = MakeListing("/proc/kallsyms");
  static const Listing kDebian = MakeListing(DebianPath());
  const Listing& listing = state.range(0) == 0 ? kRunning : kDebian;
  if (!listing.readable) {
    state.SkipWithError("/proc/kallsyms hides its addresses");
  }
  return listing;
}

// The tables, each with Load, Lookup (bytes of the name) and its size.
class CompactTable {
 public:
  explicit CompactTable(const std::string& path)
      : CompactTable(path, ProfilersOptions(path)) {}
  CompactTable(const std::string& path,
               const ksym::KernelSymbolOptions& options)
      : source_(ksym::OpenKernelSymbols(path, options)) {}
  size_t Lookup(uint64_t address) {
    const auto symbol = source_->Find(Address{address}, buffer_);
    return symbol ? symbol->name.size() : 0;
  }
  size_t symbols() const { return source_->symbol_count(); }
  size_t bytes() const { return source_->map()->memory_bytes(); }

 private:
  ksym::Result<ksym::KernelSymbolSource> source_;
  ksym::SymbolNameBuffer buffer_;
};

class OneThreadCompactTable : public CompactTable {
 public:
  explicit OneThreadCompactTable(const std::string& path)
      : CompactTable(path, {}) {}
};

// Loading is making one from a listing, as gen_ksym does.
class BlobTable {
 public:
  explicit BlobTable(const std::string& path) {
    const auto fd = ksym::OpenForRead(path);
    if (!fd) return;
    std::vector<ksym::BlobSymbol> symbols;
    ksym::KallsymsReport report;
    const auto read = ksym::ReadKallsyms(
        fd->get(), report, [&](const ksym::KallsymsLine& line) -> ksym::Status {
          symbols.push_back({line.address, line.type, std::string(line.name)});
          return {};
        });
    if (!read) std::abort();
    bytes_ = ksym::WriteKallsymsBlob(std::move(symbols)).value();
    blob_ =
        ksym::KallsymsBlob::FromBlob(bytes_, Address{0}, Address{UINT64_MAX})
            .value();
  }
  size_t Lookup(uint64_t address) {
    const auto symbol = blob_->LookupAddress(Address{address}, buffer_);
    return symbol ? symbol->name.size() : 0;
  }
  size_t symbols() const { return blob_->symbol_count(); }
  size_t bytes() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
  std::optional<ksym::KallsymsBlob> blob_;
  ksym::SymbolNameBuffer buffer_;
};

class StringTable {
 public:
  explicit StringTable(const std::string& path) {
    const size_t before = allocated;
    const auto fd = ksym::OpenForRead(path);
    if (!fd) return;
    ksym::KallsymsReport report;
    const auto read = ksym::ReadKallsyms(
        fd->get(), report, [&](const ksym::KallsymsLine& line) -> ksym::Status {
          symbols_.emplace_back(line.address.value, std::string(line.name));
          return {};
        });
    if (!read) std::abort();
    std::ranges::sort(symbols_);
    bytes_ = allocated - before;
  }
  size_t Lookup(uint64_t address) {
    auto at = std::ranges::upper_bound(
        symbols_, address, {}, &std::pair<uint64_t, std::string>::first);
    if (at == symbols_.begin()) return 0;
    name_ = std::prev(at)->second;
    return name_.size();
  }
  size_t symbols() const { return symbols_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<std::pair<uint64_t, std::string>> symbols_;
  std::string name_;
  size_t bytes_ = 0;
};

// The floor of any load: reading the listing.
void ReadListing(const Listing& listing) {
  const auto fd = ksym::OpenForRead(listing.path);
  std::vector<char> block(size_t{64} * 1024);
  while (fd && ::read(fd->get(), block.data(), block.size()) > 0) {
    benchmark::DoNotOptimize(block.data());
  }
}

void BM_ReadListing(benchmark::State& state) {
  const Listing& listing = GetListing(state);
  if (!listing.readable) return;
  for (auto _ : state) ReadListing(listing);
}

// The median.
double Middle(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

// Loads in turn with readings: the speed of a virtual CPU changes within a
// second, so that times of two benchmarks are not of the same machine.
void BM_LoadAgainstReading(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  const Listing& listing = GetListing(state);
  if (!listing.readable) return;
  std::vector<double> read_ms;
  std::vector<double> load_ms;
  std::vector<double> ratios;
  const auto ms = [](Clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  for (auto _ : state) {
    const auto begin = Clock::now();
    ReadListing(listing);
    const auto middle = Clock::now();
    const CompactTable table(listing.path);
    const auto end = Clock::now();
    read_ms.push_back(ms(middle - begin));
    load_ms.push_back(ms(end - middle));
    ratios.push_back(load_ms.back() / read_ms.back());
  }
  state.counters["read_ms"] = Middle(read_ms);
  state.counters["load_ms"] = Middle(load_ms);
  state.counters["load_to_read"] = Middle(ratios);
}

template <typename Table>
void BM_Load(benchmark::State& state) {
  const Listing& listing = GetListing(state);
  if (!listing.readable) return;
  size_t most = 0;
  size_t bytes = 0;
  size_t symbols = 1;
  for (auto _ : state) {
    const size_t before = allocated;
    peak = allocated.load();
    const Table table(listing.path);
    most = std::max(most, peak - before);
    bytes = table.bytes();
    symbols = table.symbols();
  }
  state.counters["peak_bytes"] = static_cast<double>(most);
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["bytes_per_symbol"] =
      static_cast<double>(bytes) / static_cast<double>(symbols);
}

template <typename Table>
void BM_Lookup(benchmark::State& state) {
  const Listing& listing = GetListing(state);
  if (!listing.readable) return;
  Table table(listing.path);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.Lookup(listing.queries[next]));
    next = (next + 1) % kQueries;
  }
}

// Argument 0: the running kernel's table, 1: the Debian kernel's.
// Loading takes two CPUs: the time that passes counts.
BENCHMARK(BM_ReadListing)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(BM_LoadAgainstReading)
    ->Arg(0)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_TEMPLATE(BM_Load, CompactTable)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_TEMPLATE(BM_Load, OneThreadCompactTable)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_TEMPLATE(BM_Load, BlobTable)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_TEMPLATE(BM_Load, StringTable)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_TEMPLATE(BM_Lookup, CompactTable)->Arg(0)->Arg(1);
BENCHMARK_TEMPLATE(BM_Lookup, BlobTable)->Arg(0)->Arg(1);
BENCHMARK_TEMPLATE(BM_Lookup, StringTable)->Arg(0)->Arg(1);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  ::unlink(DebianPath().c_str());
  return 0;
}
