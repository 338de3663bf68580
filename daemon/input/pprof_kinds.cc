// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/pprof_kinds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "daemon/profile/pprof_kind.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr std::string_view kSamples = "samples";

using Type = PprofTypes::Type;

// What was sampled, else what the file says, else pprof's own default.
size_t FirstType(const PprofTypes& types) {
  const auto last_named = [&](std::string_view name, size_t otherwise) {
    for (size_t i = 0; i < types.all.size(); ++i) {
      if (types.all[i].name == name) otherwise = i;
    }
    return otherwise;
  };
  // pprof shows the last type where nothing else is said (profile.proto).
  return last_named(kSamples,
                    last_named(types.default_name, types.all.size() - 1));
}

SampleKind KindOf(const Type& type) {
  SampleKind kind;
  kind.name = ksym::Printable(type.name);
  kind.unit = ksym::Printable(type.unit);
  kind.event = kind.name;
  return kind;
}

// What a comment says of the type, where samples of the kind stand for
// something.
std::optional<SampleKind> ToldKind(const PprofTypes& types, const Type& type) {
  for (const std::string_view comment : types.comments) {
    auto kind = ParsePprofKindComment(comment, type.name);
    if (!kind) continue;
    kind->unit = ksym::Printable(type.unit);
    kind->name = ksym::Printable(type.name);
    if (kind->has_values || UnitsPerSample(*kind) != 0) return kind;
  }
  return std::nullopt;
}

// What "samples" are of.
SampleKind SampledKind(const PprofTypes& types) {
  const Type& type = types.period_type;
  if (auto told = ToldKind(types, type); told && !told->has_values) {
    return *std::move(told);
  }
  if (types.period != 0 && type.name == "cpu" && type.unit == "nanoseconds") {
    return EventKind("cpu-clock", 0, types.period);
  }
  const bool is_there =
      std::ranges::find(types.all, type.name, &Type::name) != types.all.end();
  if (types.period == 0 || !is_there) {
    return EventKind(std::string(kSamples), 0, 1);
  }
  SampleKind kind = KindOf(type);
  kind.count_period = types.period;
  return kind;
}

SampleKind OtherKind(const PprofTypes& types, const Type& type) {
  if (auto told = ToldKind(types, type)) return *std::move(told);
  SampleKind kind = KindOf(type);
  kind.has_values = true;
  return kind;
}

}  // namespace

PprofKinds FindPprofKinds(const PprofTypes& types) {
  PprofKinds found;
  const auto add_other = [&](size_t type) {
    found.kinds.push_back(OtherKind(types, types.all[type]));
    found.sources.push_back(
        {.type = type, .per_sample = UnitsPerSample(found.kinds.back())});
  };
  const size_t first = FirstType(types);
  if (types.all[first].name == kSamples) {
    found.kinds.push_back(SampledKind(types));
    found.sources.push_back({.type = first, .per_sample = 1});
  } else {
    add_other(first);
  }
  for (size_t i = 0; i < types.all.size(); ++i) {
    const std::string name = ksym::Printable(types.all[i].name);
    // Numbers of a kind that is there tell nothing more: the time of so many
    // samples.
    if (i == first || FindKind(found.kinds, name) != nullptr) continue;
    if (found.kinds.size() == kMaxSampleKinds) {
      found.left_out.push_back(types.all[i].name);
    } else {
      add_other(i);
    }
  }
  return found;
}

}  // namespace profd
