#include "daemon/output/flamegraph.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cassert>
#include <chrono>
#include <ctime>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/flame_tree.h"
#include "daemon/output/safe_name.h"
#include "daemon/output/summary.h"
#include "flamegraph_page.h"

namespace profd {
namespace {

// In a script element nothing but '<' can end or hide what follows.
void AppendQuoted(std::string_view text, std::string& out) {
  std::string json;
  AppendJsonText(text, json);
  out += '"';
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  out += '"';
}

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

using Facts = std::vector<std::pair<std::string, std::string>>;

template <typename Cause, size_t kCauses>
void AddCauses(std::string_view what,
               const std::array<uint64_t, kCauses>& counts, Facts& facts) {
  for (size_t i = 0; i < kCauses; ++i) {
    if (counts[i] == 0) continue;
    facts.emplace_back(fmt::format("{}: {}", what, Name(static_cast<Cause>(i))),
                       fmt::format("{}", counts[i]));
  }
}

Facts FactsOf(const Profile& profile) {
  const CaptureMetadata& metadata = profile.metadata;
  const Accounting& accounting = profile.accounting;
  const auto seconds =
      static_cast<std::time_t>(metadata.start_unix_ns / 1'000'000'000);
  Facts facts = {
      {"host", metadata.hostname},
      {"kernel",
       fmt::format("{} {}", metadata.kernel_release, metadata.architecture)},
      {"began", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(seconds))},
      {"duration",
       fmt::format("{:.3f} s",
                   static_cast<double>(metadata.duration_ns) / 1e9)},
      {"event", metadata.frequency_hz != 0
                    ? fmt::format("{} at {} Hz per CPU", metadata.event,
                                  metadata.frequency_hz)
                    : fmt::format("{}, every {}", metadata.event,
                                  metadata.count_period)},
      {"CPUs", metadata.cpus}};
  // Other tools' profiles do not say when and where they were taken.
  if (metadata.start_unix_ns == 0) facts.clear();
  facts.emplace_back(
      "samples", fmt::format("{} taken, {} shown, {} lost", accounting.taken,
                             accounting.emitted, accounting.lost()));
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

void AppendFrames(const FlameTree& tree, std::string& out) {
  std::map<std::string_view, size_t> modules;
  for (const FlameFrame& frame : tree.frames()) {
    modules.emplace(frame.module, 0);
  }
  out += ",\n\"modules\":[";
  size_t next = 0;
  for (auto& [module, number] : modules) {
    if (next != 0) out += ',';
    AppendQuoted(module, out);
    number = next++;
  }
  out += "],\n\"frames\":[";
  for (const FlameFrame& frame : tree.frames()) {
    out += &frame == tree.frames().data() ? "\n[" : ",\n[";
    AppendQuoted(frame.name, out);
    fmt::format_to(std::back_inserter(out), ",{},{}]", modules.at(frame.module),
                   static_cast<int>(frame.kind));
  }
  out += ']';
}

// Only where there are lines.
void AppendPlaces(const FlameTree& tree, std::string& out) {
  if (tree.node_places().empty()) return;
  out += ",\n\"places\":[";
  for (const std::string& place : tree.places()) {
    if (&place != tree.places().data()) out += ',';
    AppendQuoted(place, out);
  }
  fmt::format_to(std::back_inserter(out), "],\n\"nodePlaces\":[{}]",
                 fmt::join(tree.node_places(), ","));
}

std::string Data(const Profile& profile, const OutputOptions& options) {
  const FlameTree tree(profile);
  std::string out = "{\"title\":";
  AppendQuoted(ProfileTitle(profile), out);
  out += ",\"loss\":";
  AppendQuoted(LossText(profile.accounting), out);
  out += ",\n\"about\":[";
  bool first = true;
  for (const auto& [key, value] : FactsOf(profile)) {
    out += std::exchange(first, false) ? "[" : ",[";
    AppendQuoted(key, out);
    out += ',';
    AppendQuoted(value, out);
    out += ']';
  }
  fmt::format_to(std::back_inserter(out), "],\n\"threads\":{}",
                 options.by == OutputOptions::By::kTid);
  AppendFrames(tree, out);
  // A parent is told by how far it is in front: short numbers.
  out += ",\n\"nodes\":[0,0";
  for (uint32_t i = 1; i < tree.nodes().size(); ++i) {
    const FlameTree::Node& node = tree.nodes()[i];
    fmt::format_to(std::back_inserter(out), ",{},{}", i - node.parent,
                   node.frame);
  }
  out += ']';
  AppendPlaces(tree, out);
  out += ",\n\"leaves\":[";
  for (const FlameTree::Leaf& leaf : tree.leaves()) {
    fmt::format_to(std::back_inserter(out), "{}{},{},{},{}",
                   &leaf == tree.leaves().data() ? "" : ",", leaf.node,
                   leaf.pid, leaf.tid, leaf.count);
  }
  out += "]}";
  return out;
}

// Everything in front of a mark; `page` becomes what follows it.
std::string_view TakeUpTo(std::string_view mark, std::string_view& page) {
  const size_t at = page.find(mark);
  assert(at != std::string_view::npos);
  const std::string_view front = page.substr(0, at);
  page.remove_prefix(at + mark.size());
  return front;
}

}  // namespace

std::string RenderFlamegraph(const Profile& profile,
                             const OutputOptions& options) {
  std::string_view page = web::kFlamegraphHtml;
  std::string out(TakeUpTo("@STYLE@", page));
  out += web::kFlamegraphCss;
  out += TakeUpTo("@DATA@", page);
  out += Data(profile, options);
  out += TakeUpTo("@SCRIPT@", page);
  for (const std::string_view script :
       {web::kTreeJs, web::kViewJs, web::kMainJs}) {
    out += script;
  }
  out += page;
  return out;
}

}  // namespace profd
