// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/part_adder.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "daemon/history/limits.h"
#include "daemon/history/words.h"
#include "ksym/base/bounded_name.h"

namespace profd::history {
namespace {

uint64_t HashOf(const Function& function) {
  uint64_t hash = MixHash(function.name, function.object);
  hash = MixHash(hash, uint64_t{function.build_id} << 32 | function.function);
  hash = MixHash(hash, uint64_t{function.file} << 32 | function.first_line);
  hash = MixHash(hash, uint64_t{function.kind} << 32 | function.reason);
  return MixHash(hash, function.flags);
}

uint64_t HashOf(const Node& node) {
  return MixHash(node.parent, node.function);
}

uint64_t HashOf(const Series& series) {
  uint64_t hash = MixHash(series.comm, series.cgroup);
  hash = MixHash(hash, uint64_t{series.pid} << 32 | series.tid);
  return MixHash(hash,
                 uint64_t{series.kind} << 32 | uint64_t{series.parked} << 16 |
                     uint64_t{series.user_state} << 8 | series.kernel_state);
}

template <typename Element>
uint32_t InternIn(std::vector<Element>& table, IdIndex& ids,
                  const Element& element) {
  const auto [id, is_new] =
      ids.FindOrInsert(HashOf(element), static_cast<uint32_t>(table.size()),
                       [&](uint32_t other) { return table[other] == element; });
  if (is_new) table.push_back(element);
  return id;
}

std::string LinesOf(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) {
    if (!lines.empty()) lines += '\n';
    lines += text;
  }
  return lines;
}

uint64_t StackStepsOf(const Profile& profile) {
  uint64_t steps = 0;
  for (const ProfileSample& sample : profile.samples) {
    steps += profile.Stack(sample.user).size();
    steps += profile.Stack(sample.kernel).size();
  }
  return steps;
}

}  // namespace

// Gives what one profile's samples need to the tables, each once.
class PartAdder::Part {
 public:
  Part(const Profile& profile, PartAdder& adder)
      : profile_(profile),
        adder_(adder),
        strings_(profile.strings.size()),
        functions_(profile.frames.size()),
        nodes_(profile.stacks.size()) {}

  uint32_t String(StringId id) {
    auto& known = strings_[id];
    if (!known) known = adder_.InternText(profile_.String(id));
    return *known;
  }

  // The node of a stack, whose callers come last in the profile.
  uint32_t NodeOf(CallStackId id) {
    auto& known = nodes_[id];
    if (known) return *known;
    uint32_t node = 0;
    const auto frames = profile_.Stack(id);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      node =
          adder_.InternNode({.parent = node, .function = FunctionOf(*frame)});
    }
    known = node;
    return node;
  }

 private:
  uint32_t FunctionOf(FrameId id) {
    auto& known = functions_[id];
    if (known) return *known;
    const Frame& frame = profile_.frames[id];
    Function function = {
        .name = String(frame.name),
        .object = String(frame.object),
        .build_id = String(frame.build_id),
        .function = String(frame.function),
        .kind = adder_.InternText(frame.kind->name),
        .reason = adder_.InternText(ksym::UnresolvedName(frame.reason)),
        .first_line = frame.first_line,
        .flags = FlagsOf(*frame.kind)};
    // Of native code the file goes with the line, which is of the place within
    // the function; of a runtime's it says which function it is.
    if (!frame.kind->has_debug_data) function.file = String(frame.file);
    known = adder_.InternFunction(function);
    return *known;
  }

  const Profile& profile_;
  PartAdder& adder_;
  std::vector<std::optional<uint32_t>> strings_;
  std::vector<std::optional<uint32_t>> functions_;
  std::vector<std::optional<uint32_t>> nodes_;
};

bool PartAdder::Add(const Profile& part, const Run& run) {
  if (!HasRoomFor(part)) return false;
  const uint32_t setting = AddSetting(part.metadata, run);
  const auto place = static_cast<uint32_t>(tables_.parts.size());
  const auto first_counter = static_cast<uint32_t>(tables_.counters.size());
  AddCounters(part.accounting);
  tables_.parts.push_back(
      {.start_unix_ns = part.metadata.start_unix_ns,
       .duration_ns = part.metadata.duration_ns,
       .setting = setting,
       .first_counter = first_counter,
       .counters =
           static_cast<uint32_t>(tables_.counters.size()) - first_counter});
  Part names(part, *this);
  for (const ProfileSample& sample : part.samples) {
    const uint32_t series = InternSeries(
        {.comm = names.String(sample.comm),
         .cgroup = names.String(sample.cgroup),
         .pid = sample.pid,
         .tid = sample.tid,
         .kind = tables_.settings[setting].first_kind + sample.kind,
         .user_state = static_cast<uint32_t>(sample.user_state),
         .kernel_state = static_cast<uint32_t>(sample.kernel_state),
         .parked = sample.parked ? 1u : 0u});
    tables_.rows.push_back({.series = series,
                            .user = names.NodeOf(sample.user),
                            .kernel = names.NodeOf(sample.kernel),
                            .part = place,
                            .count = sample.count,
                            .value = sample.value});
  }
  stack_steps_ += StackStepsOf(part);
  return true;
}

// By the most that the part can bring: all of it new.
bool PartAdder::HasRoomFor(const Profile& part) const {
  size_t frames = 0;
  for (CallStackId id = 0; id < part.stacks.size(); ++id) {
    frames += part.Stack(id).size();
  }
  size_t texts = 0;
  for (StringId id = 0; id < part.strings.size(); ++id) {
    texts += std::min(part.String(id).size(), ksym::kMaxShownBytes);
  }
  // Words of ours, and a setting's texts.
  constexpr size_t kOwnStrings = 256;
  constexpr size_t kOwnTextBytes = kOwnStrings * ksym::kMaxShownBytes;
  const Sizes sizes = tables_.sizes();
  return part.metadata.kinds.size() + sizes.kinds <= kMaxSettings &&
         sizes.settings < kMaxSettings && sizes.parts < kMaxParts &&
         sizes.strings + part.strings.size() + kOwnStrings <= kMaxStrings &&
         tables_.text_bytes + texts + kOwnTextBytes <= kMaxTextBytes &&
         sizes.functions + part.frames.size() <= kMaxFunctions &&
         sizes.nodes + frames <= kMaxNodes &&
         sizes.series + part.samples.size() <= kMaxSeries &&
         sizes.rows + part.samples.size() <= kMaxRows &&
         stack_steps_ + StackStepsOf(part) <= kMaxStackSteps;
}

uint32_t PartAdder::InternText(std::string_view text) {
  std::string room;
  const std::string_view bounded = ksym::BoundName(text, room);
  const size_t before = tables_.strings.size();
  const StringId id = tables_.strings.Intern(bounded);
  if (tables_.strings.size() != before) tables_.text_bytes += bounded.size();
  return id;
}

uint32_t PartAdder::InternFunction(const Function& function) {
  return InternIn(tables_.functions, function_ids_, function);
}

uint32_t PartAdder::InternNode(const Node& node) {
  return InternIn(tables_.nodes, node_ids_, node);
}

uint32_t PartAdder::InternSeries(const Series& series) {
  return InternIn(tables_.series, series_ids_, series);
}

// The last one where nothing changed: settings stay for hours.
uint32_t PartAdder::AddSetting(const CaptureMetadata& metadata,
                               const Run& run) {
  Setting setting = {.version = InternText(metadata.version),
                     .hostname = InternText(metadata.hostname),
                     .kernel_release = InternText(metadata.kernel_release),
                     .architecture = InternText(metadata.architecture),
                     .cpus = InternText(metadata.cpus),
                     .stack_store = InternText(metadata.stack_store),
                     .unwind = InternText(metadata.unwind),
                     .warnings = InternText(LinesOf(metadata.warnings)),
                     .boot = InternText(run.boot),
                     .run = InternText(run.name),
                     .max_stack_depth = metadata.max_stack_depth,
                     .first_kind = static_cast<uint32_t>(tables_.kinds.size()),
                     .kinds = static_cast<uint32_t>(metadata.kinds.size())};
  std::vector<Kind> kinds;
  kinds.reserve(metadata.kinds.size());
  for (const SampleKind& kind : metadata.kinds) {
    kinds.push_back({.name = InternText(kind.name),
                     .unit = InternText(kind.unit),
                     .event = InternText(kind.event),
                     .frequency_hz = kind.frequency_hz,
                     .count_period = kind.count_period,
                     .has_values = kind.has_values ? 1u : 0u});
  }
  if (!tables_.settings.empty()) {
    const Setting& last = tables_.settings.back();
    Setting same = setting;
    same.first_kind = last.first_kind;
    if (same == last && std::equal(kinds.begin(), kinds.end(),
                                   tables_.kinds.begin() + last.first_kind)) {
      return static_cast<uint32_t>(tables_.settings.size() - 1);
    }
  }
  tables_.kinds.insert(tables_.kinds.end(), kinds.begin(), kinds.end());
  tables_.settings.push_back(setting);
  return static_cast<uint32_t>(tables_.settings.size() - 1);
}

void PartAdder::AddCounters(const Accounting& accounting) {
  for (const auto& [name, value] : CountersOf(accounting)) {
    tables_.counters.push_back({.name = InternText(name), .value = value});
  }
}

size_t PartAdder::memory_bytes() const {
  return tables_.memory_bytes() + function_ids_.memory_bytes() +
         node_ids_.memory_bytes() + series_ids_.memory_bytes();
}

}  // namespace profd::history
