#include "daemon/profile/profile_terms.h"

namespace profd {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace

std::string_view Name(StackState state) {
  switch (state) {
    case StackState::kNone:
      return "none";
    case StackState::kWhole:
      return "whole";
    case StackState::kTruncated:
      return "truncated";
    case StackState::kBroken:
      return "broken";
    case StackState::kFaulted:
      return "faulted";
    case StackState::kCollided:
      return "collided";
  }
  return "unknown";
}

std::optional<StackState> StackStateNamed(std::string_view name) {
  for (const StackState state :
       {StackState::kNone, StackState::kWhole, StackState::kTruncated,
        StackState::kBroken, StackState::kFaulted, StackState::kCollided}) {
    if (Name(state) == name) return state;
  }
  return std::nullopt;
}

std::optional<uint64_t> NanosecondsPerSample(const CaptureMetadata& metadata) {
  if (metadata.frequency_hz != 0) return kNsPerSecond / metadata.frequency_hz;
  // It counts nanoseconds.
  if (metadata.event.starts_with("cpu-clock") && metadata.count_period != 0) {
    return metadata.count_period;
  }
  return std::nullopt;
}

}  // namespace profd
