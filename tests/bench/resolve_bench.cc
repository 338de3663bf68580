// SPDX-License-Identifier: Apache-2.0
// Naming of a raw profile of 100,000 distinct stacks of 30 frames, whose
// addresses are 4,096 random ones in the C library of this process.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "daemon/naming/resolve.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"

namespace profd {
namespace {

constexpr size_t kStacks = 100'000;
constexpr size_t kDepth = 30;
constexpr size_t kAddresses = 4096;

ksym::Result<RawProfile> MakeRawProfile() {
  RawProfile raw;
  const ksym::ProcessId self = {.pid = static_cast<uint32_t>(::getpid())};
  auto mappings = ksym::ReadMaps(self.pid);
  if (!mappings) return ksym::Fail(std::move(mappings.error()));
  const ksym::ProcessImage& image =
      raw.images.emplace(self, ksym::ProcessImage{self, std::move(*mappings)})
          .first->second;
  const ksym::Mapping* code =
      image.Find({reinterpret_cast<uint64_t>(&::getpid)});
  if (code == nullptr) {
    return ksym::Fail(ksym::ErrorCode::kNotFound, "no C library is mapped");
  }
  std::mt19937_64 random(1);
  std::vector<uint64_t> addresses(kAddresses);
  for (uint64_t& address : addresses) {
    address = code->start.value + random() % (code->end - code->start);
  }
  for (size_t i = 0; i < kStacks; ++i) {
    const StackId id = kFirstStackId + i;
    RawStack stack;
    for (size_t depth = 0; depth < kDepth; ++depth) {
      stack.frames.push_back(addresses[random() % kAddresses]);
    }
    raw.stacks.Add(id, stack);
    RawSample& sample = raw.samples.emplace_back();
    sample.process = self;
    sample.comm = Comm("bench");
    sample.user_stack = id;
    sample.count = 1;
  }
  return raw;
}

void Resolve(benchmark::State& state) {
  const auto raw = MakeRawProfile();
  if (!raw) {
    state.SkipWithError(raw.error().message().c_str());
    return;
  }
  for (auto _ : state) {
    ksym::Symbolizer symbolizer({});
    SymbolizerNames names(symbolizer);
    Resolver resolver({});
    ProfileBuilder builder;
    resolver.Add(*raw, names, builder);
    benchmark::DoNotOptimize(builder.distinct_samples());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kStacks));
}
BENCHMARK(Resolve)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace profd

BENCHMARK_MAIN();
