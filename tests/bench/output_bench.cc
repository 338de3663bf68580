// SPDX-License-Identifier: Apache-2.0
// The writers on 100,000 distinct stacks of 30 frames out of 20,000 functions,
// and what comes before them: building a profile, raw captures.

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/output/format.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/raw_profile_merge.h"
#include "daemon/raw/raw_file.h"

namespace profd {
namespace {

constexpr size_t kStacks = 100'000;
constexpr size_t kDepth = 30;
constexpr size_t kFunctions = 20'000;

Profile MakeProfile() {
  ProfileBuilder builder;
  std::vector<FrameId> frames;
  frames.reserve(kFunctions);
  for (size_t i = 0; i < kFunctions; ++i) {
    frames.push_back(builder.AddFrame(
        {.name = builder.Intern("some_function_" + std::to_string(i)),
         .object = builder.Intern("/usr/lib/lib.so"),
         .address = 0x7f0000000000 + i * 64,
         .file_offset = i * 64}));
  }
  std::mt19937 random(1);
  std::vector<FrameId> stack(kDepth);
  for (size_t i = 0; i < kStacks; ++i) {
    // As in programs: the root ends are few, the leaves many.
    for (size_t depth = 0; depth < kDepth; ++depth) {
      const size_t choices = depth < 10 ? kFunctions : 4;
      stack[depth] = frames[random() % choices];
    }
    builder.AddSample({.comm = builder.Intern("app"),
                       .pid = 1 + static_cast<uint32_t>(i % 50),
                       .user_state = StackState::kWhole,
                       .user = builder.AddStack(stack),
                       .count = 1 + i % 9});
  }
  return std::move(builder).Finish({});
}

RawProfile MakeRawProfile() {
  RawProfile profile;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < kStacks; ++i) {
    const StackId id = random() | kFirstStackId;
    RawStack stack;
    for (size_t depth = 0; depth < kDepth; ++depth) {
      stack.frames.push_back(0x7f0000000000 + random() % kFunctions * 64);
    }
    profile.stacks.Add(id, stack);
    RawSample& sample = profile.samples.emplace_back();
    sample.process.pid = 1 + static_cast<uint32_t>(i % 50);
    sample.comm = Comm("app");
    sample.user_stack = id;
    sample.count = 1;
  }
  return profile;
}

void Build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MakeProfile());
}
BENCHMARK(Build)->Unit(benchmark::kMillisecond);

void Write(benchmark::State& state, OutputFormat format) {
  static const Profile kProfile = MakeProfile();
  size_t bytes = 0;
  for (auto _ : state) {
    const std::string out = Render(kProfile, format, {});
    bytes = out.size();
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["output_bytes"] = static_cast<double>(bytes);
}
BENCHMARK_CAPTURE(Write, folded, OutputFormat::kFolded)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Write, text, OutputFormat::kText)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Write, json, OutputFormat::kJson)
    ->Unit(benchmark::kMillisecond);

void WriteRaw(benchmark::State& state) {
  RawCapture capture;
  capture.profile = MakeRawProfile();
  std::string out;
  for (auto _ : state) {
    if (!WriteRawCapture(capture, out)) state.SkipWithError("not written");
  }
  state.counters["output_bytes"] = static_cast<double>(out.size());
}
BENCHMARK(WriteRaw)->Unit(benchmark::kMillisecond);

void ReadRaw(benchmark::State& state) {
  RawCapture capture;
  capture.profile = MakeRawProfile();
  std::string file;
  if (!WriteRawCapture(capture, file)) state.SkipWithError("not written");
  for (auto _ : state) {
    if (!ReadRawCapture(file)) {
      state.SkipWithError("not read");
    }
  }
}
BENCHMARK(ReadRaw)->Unit(benchmark::kMillisecond);

void MergeIntervals(benchmark::State& state) {
  const RawProfile profile = MakeRawProfile();
  for (auto _ : state) {
    state.PauseTiming();
    RawProfile into = profile;
    RawProfile interval = profile;
    state.ResumeTiming();
    Merge(into, std::move(interval));
  }
}
BENCHMARK(MergeIntervals)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace profd

BENCHMARK_MAIN();
