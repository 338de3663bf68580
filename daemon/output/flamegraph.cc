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
#include <optional>
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
  if (kind.has_values && AddsUpToCpus(kind)) {
    return kind.event + "; adds up to the time of CPUs";
  }
  if (kind.has_values) return kind.event + ", each with its value";
  return kind.frequency_hz != 0
             ? fmt::format("{} at {} Hz per CPU", kind.event, kind.frequency_hz)
             : fmt::format("{}, every {}", kind.event, kind.count_period);
}

// Other kinds of samples are in the accounting, too.
std::string SamplesText(const Profile& profile) {
  const Accounting& accounting = profile.accounting;
  const std::vector<SampleKind>& kinds = profile.metadata.kinds;
  if (kinds.size() > 1 || kinds.front().has_values) {
    return fmt::format("{} taken, {} lost", accounting.taken,
                       accounting.lost());
  }
  return fmt::format("{} taken, {} shown, {} lost", accounting.taken,
                     SamplesOf(profile), accounting.lost());
}

std::string ShownText(const SampleKind& kind) {
  return fmt::format("{}, {}", kind.name, UnitName(kind));
}

// `kind`: the one that is shown when the page opens.
FlameFacts FactsOf(const Profile& profile, const SampleKind& kind) {
  const CaptureMetadata& metadata = profile.metadata;
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
  facts.emplace_back("shown", ShownText(kind));
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

// A kind of samples that the page can show, or the sum of all.
struct ShownKind {
  SampleKind kind;          // with values where its numbers are of its unit
  uint64_t per_number = 1;  // so much of it is one in the list of leaves
  uint64_t sum = 0;
};

// By their places. Where there are several, time is told in its unit, so that
// numbers of all of them can be compared.
std::vector<ShownKind> KindsOf(const Profile& profile, const FlameTree& tree) {
  const std::vector<SampleKind>& kinds = profile.metadata.kinds;
  const bool are_states = kinds.size() > 1 && AreThreadStates(kinds);
  std::vector<ShownKind> shown;
  for (const SampleKind& kind : kinds) {
    shown.push_back({.kind = kind});
    if (!are_states || kind.has_values) continue;
    shown.back().per_number = UnitsPerSample(kind);
    shown.back().kind.has_values = true;
  }
  for (const FlameTree::Leaf& leaf : tree.leaves()) {
    ShownKind& kind = shown[leaf.kind];
    kind.sum += leaf.count * kind.per_number;
  }
  return shown;
}

// All of them in one, where that makes sense.
std::optional<ShownKind> SumOf(const std::vector<SampleKind>& kinds,
                               const std::vector<ShownKind>& shown) {
  if (kinds.size() == 1 || !AreThreadStates(kinds)) return std::nullopt;
  ShownKind sum = {.kind = SumOfThreadStates(kinds)};
  for (const ShownKind& kind : shown) sum.sum += kind.sum;
  return sum;
}

// The texts of the page while it shows this kind.
void AppendKindTexts(std::string_view host, const ShownKind& shown,
                     std::string& out) {
  const SampleKind& kind = shown.kind;
  out += "{\"name\":";
  AppendScriptText(kind.name, out);
  out += ",\"title\":";
  AppendScriptText(KindTitle(host, kind, shown.sum), out);
  out += ",\"unit\":";
  AppendScriptText(UnitName(kind), out);
  out += ",\"about\":[";
  AppendFlameFacts({{"event", EventText(kind)}, {"shown", ShownText(kind)}},
                   out);
  out += ']';
}

// The members "leaves" of one kind, or "kinds" with a list each and, where all
// can be added up, "sum".
void AppendLeaves(const Profile& profile, const FlameTree& tree,
                  const OutputOptions& options, std::string& out) {
  const std::vector<SampleKind>& kinds = profile.metadata.kinds;
  std::vector<std::string> lists(kinds.size());
  std::vector<uint32_t> last(kinds.size());
  FlameOwners owners(tree, options.labels);
  for (const FlameTree::Leaf& leaf : tree.leaves()) {
    owners.AppendLeaf(leaf, last[leaf.kind], lists[leaf.kind]);
  }
  owners.AppendTo(out);
  if (kinds.size() == 1) {
    out += ",\n\"leaves\":[" + lists.front() + "]}";
    return;
  }
  const std::vector<ShownKind> shown = KindsOf(profile, tree);
  if (const auto sum = SumOf(kinds, shown)) {
    out += ",\n\"sum\":";
    AppendKindTexts(profile.metadata.hostname, *sum, out);
    out += '}';
  }
  out += ",\n\"kinds\":[";
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i != 0) out += ",\n";
    AppendKindTexts(profile.metadata.hostname, shown[i], out);
    fmt::format_to(std::back_inserter(out), ",\"scale\":{},\"leaves\":[{}]}}",
                   shown[i].per_number, lists[i]);
  }
  out += "]}";
}

}  // namespace

std::string RenderFlamegraphData(const Profile& profile,
                                 const OutputOptions& options) {
  const FlameTree tree(profile);
  const std::vector<ShownKind> shown = KindsOf(profile, tree);
  const ShownKind first =
      SumOf(profile.metadata.kinds, shown).value_or(shown.front());
  std::string out = "{\"title\":";
  AppendScriptText(KindTitle(profile.metadata.hostname, first.kind, first.sum),
                   out);
  out += ",\"loss\":";
  AppendScriptText(LossText(profile.accounting), out);
  out += ",\n\"about\":[";
  AppendFlameFacts(FactsOf(profile, first.kind), out);
  fmt::format_to(std::back_inserter(out), "],\n\"threads\":{}",
                 HasThreads(tree, options));
  AppendFlameUnit(first.kind, out);
  AppendFlameNodes(tree, out);
  if (const auto parked = tree.parked_frame()) {
    fmt::format_to(std::back_inserter(out), ",\n\"parked\":{}", *parked);
  }
  AppendPlaces(tree, out);
  AppendLeaves(profile, tree, options, out);
  return out;
}

std::string RenderFlamegraph(const Profile& profile,
                             const OutputOptions& options) {
  return FlamePageWith(RenderFlamegraphData(profile, options));
}

}  // namespace profd
