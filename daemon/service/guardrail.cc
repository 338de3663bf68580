// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/guardrail.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profd {
namespace {

constexpr uint64_t kMinCacheBytes = uint64_t{1} << 20;
constexpr uint64_t kReducedDepth = 32;

// At three quarters there is room for what a level gives back.
bool IsWellUnder(uint64_t use, uint64_t limit) {
  return limit == 0 || use < limit / 4 * 3;
}

}  // namespace

std::optional<Guardrail::Change> Guardrail::Check(Clock::time_point now,
                                                  const Use& use,
                                                  const ServiceConfig& wanted) {
  const ServiceConfig::Limits& limits = wanted.limits;
  using Milliseconds = std::chrono::duration<uint64_t, std::milli>;
  const auto elapsed_ms = std::max<uint64_t>(
      std::chrono::duration_cast<Milliseconds>(now - window_begin_).count(), 1);
  window_begin_ = now;
  const Use before = std::exchange(at_begin_, use);
  // A percent of a CPU is 10,000 ns per ms; in tenths, as limits are small.
  const uint64_t cpu_permille =
      (use.cpu_ns - std::min(use.cpu_ns, before.cpu_ns)) / elapsed_ms / 1000;
  const uint64_t max_permille = limits.cpu_percent * 10;
  const bool cpu_over = max_permille != 0 && cpu_permille > max_permille;
  const bool memory_over =
      limits.memory_bytes != 0 && use.resident_bytes > limits.memory_bytes;
  const bool well_under = IsWellUnder(cpu_permille, max_permille) &&
                          IsWellUnder(use.resident_bytes, limits.memory_bytes);
  over_ = cpu_over || memory_over ? over_ + 1 : 0;
  under_ = well_under ? under_ + 1 : 0;
  std::string why =
      fmt::format("own use is {}.{} % of a CPU and {} MiB", cpu_permille / 10,
                  cpu_permille % 10, use.resident_bytes >> 20);
  if (over_ >= kPatience && TakeAway(wanted)) {
    // What was taken away shows in the windows to come: these alone decide on
    // the next step.
    over_ = 0;
    why +=
        cpu_over ? ", over limits.cpu_percent" : ", over limits.memory_bytes";
    return Change{.state = state_, .why = std::move(why)};
  }
  if (under_ >= kRest && GiveBack(wanted)) {
    under_ = 0;
    why += ", well under the limits";
    return Change{.state = state_, .why = std::move(why)};
  }
  return std::nullopt;
}

bool Guardrail::TakeAway(const ServiceConfig& wanted) {
  // Waits go first: without them the profiles of CPUs are as good as before.
  if (wanted.waiting.enabled && state_.has_waits) {
    state_.has_waits = false;
    return true;
  }
  if (state_.level == kMaxLevel) return false;
  ++state_.level;
  return true;
}

bool Guardrail::GiveBack(const ServiceConfig& wanted) {
  if (state_.level > 0) {
    --state_.level;
    return true;
  }
  // Last, as they went first. A configuration without waits has nothing to get
  // back, and the state is as at the start.
  return !std::exchange(state_.has_waits, true) && wanted.waiting.enabled;
}

ServiceConfig Reduce(ServiceConfig config, const Guardrail::State& state) {
  const unsigned level = state.level;
  if (!state.has_waits) config.waiting.enabled = false;
  if (level == 0) return config;
  const uint64_t divisor = level == 1 ? 2 : 4;
  config.frequency_hz = std::max<uint64_t>(config.frequency_hz / divisor, 1);
  if (level < 3) return config;
  config.symbols.cache_bytes =
      std::max(config.symbols.cache_bytes / 4, kMinCacheBytes);
  config.stacks.max_depth = std::min(config.stacks.max_depth, kReducedDepth);
  config.stacks.memory_bytes =
      std::max(config.stacks.memory_bytes / 4, kMinCacheBytes);
  if (level < Guardrail::kMaxLevel) return config;
  if (config.stacks.unwind != "none") config.stacks.unwind = "fp";
  std::erase(config.labels, "tid");
  return config;
}

}  // namespace profd
