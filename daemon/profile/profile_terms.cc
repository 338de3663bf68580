// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/profile_terms.h"

#include <utility>

namespace profd {
namespace {

constexpr std::pair<StackEnd, StackState> kBrokenBy[] = {
    {StackEnd::kNoTable, StackState::kNoTable},
    {StackEnd::kNoMapping, StackState::kNoMapping},
    {StackEnd::kBadRead, StackState::kBadRead},
    {StackEnd::kUnsupported, StackState::kUnsupported},
    {StackEnd::kNoProgress, StackState::kNoProgress},
    {StackEnd::kBeyondCopy, StackState::kBeyondCopy},
};

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
    case StackState::kNoTable:
    case StackState::kNoMapping:
    case StackState::kBadRead:
    case StackState::kUnsupported:
    case StackState::kNoProgress:
    case StackState::kBeyondCopy:
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

StackState StateOf(StackEnd end) {
  if (end == StackEnd::kDepthLimit) return StackState::kTruncated;
  for (const auto& [cause, state] : kBrokenBy) {
    if (cause == end) return state;
  }
  return StackState::kWhole;
}

std::optional<StackEnd> CauseOf(StackState state) {
  for (const auto& [cause, broken] : kBrokenBy) {
    if (broken == state) return cause;
  }
  return std::nullopt;
}

std::optional<uint64_t> NanosecondsPerSample(const CaptureMetadata& metadata) {
  const SampleKind& kind = metadata.kinds.front();
  if (kind.name != "cpu" || kind.unit != "nanoseconds") return std::nullopt;
  if (kind.has_values) return 1;
  const uint64_t ns = UnitsPerSample(kind);
  return ns == 0 ? std::nullopt : std::optional(ns);
}

}  // namespace profd
