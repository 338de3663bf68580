// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/flamegraph.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/flame_page.h"
#include "daemon/output/flame_tree.h"
#include "daemon/output/summary.h"

namespace profd {
namespace {

// What the reader of the picture has to know about what it lacks.
std::string LossText(const Accounting& accounting) {
  std::string text;
  if (accounting.lost() != 0) {
    text = fmt::format("{} of {} samples lost", accounting.lost(),
                       accounting.taken);
  }
  uint64_t damaged = 0;
  for (const uint64_t count : accounting.damaged_by_cause) damaged += count;
  if (damaged != 0) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} with incomplete stacks", damaged);
  }
  return text;
}

template <typename Cause, size_t kCauses>
void AddCauses(std::string_view what,
               const std::array<uint64_t, kCauses>& counts, FlameFacts& facts) {
  for (size_t i = 0; i < kCauses; ++i) {
    if (counts[i] == 0) continue;
    facts.emplace_back(fmt::format("{}: {}", what, Name(static_cast<Cause>(i))),
                       fmt::format("{}", counts[i]));
  }
}

// What was sampled, and how often.
std::string EventText(const SampleKind& kind) {
  if (AddsUpToThreads(kind)) {
    return kind.event + "; adds up to the time of threads, not of CPUs";
  }
  if (kind.has_values) return kind.event + ", each with its value";
  return kind.frequency_hz != 0
             ? fmt::format("{} at {} Hz per CPU", kind.event, kind.frequency_hz)
             : fmt::format("{}, every {}", kind.event, kind.count_period);
}

// Other kinds of samples are in the accounting, too.
std::string SamplesText(const Profile& profile) {
  const Accounting& accounting = profile.accounting;
  if (profile.metadata.kinds.front().has_values) {
    return fmt::format("{} taken, {} lost", accounting.taken,
                       accounting.lost());
  }
  return fmt::format("{} taken, {} shown, {} lost", accounting.taken,
                     SamplesOf(profile), accounting.lost());
}

FlameFacts FactsOf(const Profile& profile) {
  const CaptureMetadata& metadata = profile.metadata;
  const SampleKind& kind = metadata.kinds.front();
  const Accounting& accounting = profile.accounting;
  const auto seconds =
      static_cast<std::time_t>(metadata.start_unix_ns / 1'000'000'000);
  FlameFacts facts = {
      {"host", metadata.hostname},
      {"kernel",
       fmt::format("{} {}", metadata.kernel_release, metadata.architecture)},
      {"began", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(seconds))},
      {"duration",
       fmt::format("{:.3f} s",
                   static_cast<double>(metadata.duration_ns) / 1e9)},
      {"event", EventText(kind)},
      {"CPUs", metadata.cpus}};
  // Other tools' profiles do not say when and where they were taken.
  if (metadata.start_unix_ns == 0) facts.clear();
  facts.emplace_back("shown", fmt::format("{}, {}", kind.name, UnitName(kind)));
  facts.emplace_back("samples", SamplesText(profile));
  AddCauses<LossCause>("lost", accounting.lost_by_cause, facts);
  AddCauses<DamageCause>("incomplete", accounting.damaged_by_cause, facts);
  if (accounting.time_running_ns < accounting.time_enabled_ns) {
    facts.emplace_back(
        "sampling ran",
        fmt::format("{:.1f} % of the time",
                    100.0 * static_cast<double>(accounting.time_running_ns) /
                        static_cast<double>(accounting.time_enabled_ns)));
  }
  for (const std::string& warning : metadata.warnings) {
    facts.emplace_back("warning", warning);
  }
  facts.emplace_back("made by", "ksym-profile " + metadata.version);
  return facts;
}

// Only where there are lines.
void AppendPlaces(const FlameTree& tree, std::string& out) {
  if (tree.node_places().empty()) return;
  out += ",\n\"places\":[";
  for (const std::string& place : tree.places()) {
    if (&place != tree.places().data()) out += ',';
    AppendScriptText(place, out);
  }
  fmt::format_to(std::back_inserter(out), "],\n\"nodePlaces\":[{}]",
                 fmt::join(tree.node_places(), ","));
}

// Whether samples are told apart by thread: as was asked for, or as a profile
// that was read has them.
bool HasThreads(const FlameTree& tree, const OutputOptions& options) {
  return options.by == OutputOptions::By::kTid ||
         std::ranges::any_of(tree.leaves(), [](const FlameTree::Leaf& leaf) {
           return leaf.tid != 0 && leaf.tid != leaf.pid;
         });
}

std::string Data(const Profile& profile, const OutputOptions& options) {
  const FlameTree tree(profile);
  std::string out = "{\"title\":";
  AppendScriptText(ProfileTitle(profile), out);
  out += ",\"loss\":";
  AppendScriptText(LossText(profile.accounting), out);
  out += ",\n\"about\":[";
  AppendFlameFacts(FactsOf(profile), out);
  fmt::format_to(std::back_inserter(out), "],\n\"threads\":{}",
                 HasThreads(tree, options));
  AppendFlameUnit(profile.metadata.kinds.front(), out);
  AppendFlameNodes(tree, out);
  AppendPlaces(tree, out);
  FlameOwners owners(tree, options.labels);
  std::string leaves;
  uint32_t last = 0;
  for (const FlameTree::Leaf& leaf : tree.leaves()) {
    owners.AppendLeaf(leaf, last, leaves);
  }
  owners.AppendTo(out);
  out += ",\n\"leaves\":[";
  out += leaves;
  out += "]}";
  return out;
}

}  // namespace

std::string RenderFlamegraph(const Profile& profile,
                             const OutputOptions& options) {
  return FlamePageWith(Data(profile, options));
}

}  // namespace profd
