// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/part_adder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/limits.h"
#include "daemon/history/words.h"
#include "daemon/profile/label_set.h"
#include "ksym/base/bounded_name.h"

namespace profd::history {
namespace {

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
  Part(const Profile& profile, TableBuilder& builder)
      : profile_(profile),
        builder_(builder),
        strings_(profile.strings.size()),
        functions_(profile.frames.size()),
        nodes_(profile.stacks.size()),
        named_by_(profile.strings.size()) {}

  uint32_t String(StringId id) {
    auto& known = strings_[id];
    if (!known) known = builder_.InternText(profile_.String(id));
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
          builder_.InternNode({.parent = node, .function = FunctionOf(*frame)});
    }
    known = node;
    return node;
  }

  // Keeps what the sample's labels call the pod and the container.
  void NameCgroup(const ProfileSample& sample) {
    if (sample.labels == 0 || sample.cgroup == 0) return;
    if (named_by_[sample.cgroup] == sample.labels) return;
    named_by_[sample.cgroup] = sample.labels;
    const auto find = [&](std::string_view wanted) -> uint32_t {
      for (const auto& [key, value] : profile_.LabelsOf(sample)) {
        if (profile_.String(key) == wanted) return String(value);
      }
      return 0;
    };
    const uint32_t pod = find(kPodLabel);
    const CgroupName name = {
        .cgroup = String(sample.cgroup),
        .pod_namespace = pod == 0 ? 0 : find(kNamespaceLabel),
        .pod = pod,
        .container = find(pod == 0 ? kContainerLabel : kPodContainerLabel)};
    // Other labels are of processes.
    if (name.pod != 0 || name.container != 0) builder_.NameCgroup(name);
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
        .kind = builder_.InternText(frame.kind->name),
        .reason = builder_.InternText(ksym::UnresolvedName(frame.reason)),
        .first_line = frame.first_line,
        .flags = FlagsOf(*frame.kind)};
    // The file of native code goes with the line, which is of the place within
    // the function; that of a runtime's code says which function it is.
    if (!frame.kind->has_debug_data) function.file = String(frame.file);
    known = builder_.InternFunction(function);
    return *known;
  }

  const Profile& profile_;
  TableBuilder& builder_;
  std::vector<std::optional<uint32_t>> strings_;
  std::vector<std::optional<uint32_t>> functions_;
  std::vector<std::optional<uint32_t>> nodes_;
  std::vector<LabelSetId> named_by_;  // by cgroup; 0: by none yet
};

bool PartAdder::Add(const Profile& part, const Run& run) {
  const uint64_t steps = stack_steps_ + StackStepsOf(part);
  // Before anything is added, as nothing can be taken out again.
  if (steps > kMaxStackSteps || !HasRoomFor(part)) return false;
  stack_steps_ = steps;
  const uint32_t setting = AddSetting(part.metadata, run);
  Tables& tables = builder_.tables();
  const auto place = static_cast<uint16_t>(tables.parts.size());
  const auto first_counter = static_cast<uint32_t>(tables.counters.size());
  AddCounters(part.accounting);
  tables.parts.push_back(
      {.start_unix_ns = part.metadata.start_unix_ns,
       .duration_ns = part.metadata.duration_ns,
       .setting = setting,
       .first_counter = first_counter,
       .counters =
           static_cast<uint32_t>(tables.counters.size()) - first_counter});
  Part names(part, builder_);
  for (const ProfileSample& sample : part.samples) {
    names.NameCgroup(sample);
    const uint32_t series = builder_.InternSeries(
        {.comm = names.String(sample.comm),
         .cgroup = names.String(sample.cgroup),
         .pid = sample.pid,
         .tid = sample.tid,
         .kind = tables.settings[setting].first_kind + sample.kind,
         .user_state = static_cast<uint32_t>(sample.user_state),
         .kernel_state = static_cast<uint32_t>(sample.kernel_state),
         .parked = sample.parked ? 1u : 0u});
    tables.rows.push_back(
        {.series = series,
         .user = names.NodeOf(sample.user),
         .kernel = names.NodeOf(sample.kernel),
         .part = place,
         .slice = RowSliceOf(part.metadata.start_unix_ns, sample.slice),
         .count = sample.count,
         .value = sample.value});
  }
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
  const Sizes sizes = tables().sizes();
  return part.metadata.kinds.size() + sizes.kinds <= kMaxSettings &&
         sizes.settings < kMaxSettings && sizes.parts < kMaxParts &&
         sizes.strings + part.strings.size() + kOwnStrings <= kMaxStrings &&
         tables().text_bytes + texts + kOwnTextBytes <= kMaxTextBytes &&
         sizes.functions + part.frames.size() <= kMaxFunctions &&
         sizes.nodes + frames <= kMaxNodes &&
         sizes.series + part.samples.size() <= kMaxSeries &&
         sizes.rows + part.samples.size() <= kMaxRows;
}

uint32_t PartAdder::AddSetting(const CaptureMetadata& metadata,
                               const Run& run) {
  const auto text = [this](std::string_view words) {
    return builder_.InternText(words);
  };
  std::vector<Kind> kinds;
  kinds.reserve(metadata.kinds.size());
  for (const SampleKind& kind : metadata.kinds) {
    kinds.push_back({.name = text(kind.name),
                     .unit = text(kind.unit),
                     .event = text(kind.event),
                     .frequency_hz = kind.frequency_hz,
                     .count_period = kind.count_period,
                     .has_values = kind.has_values ? 1u : 0u});
  }
  return builder_.InternSetting(
      {.version = text(metadata.version),
       .hostname = text(metadata.hostname),
       .kernel_release = text(metadata.kernel_release),
       .architecture = text(metadata.architecture),
       .cpus = text(metadata.cpus),
       .stack_store = text(metadata.stack_store),
       .unwind = text(metadata.unwind),
       .warnings = text(LinesOf(metadata.warnings)),
       .boot = text(run.boot),
       .run = text(run.name),
       .max_stack_depth = metadata.max_stack_depth},
      kinds);
}

void PartAdder::AddCounters(const Accounting& accounting) {
  for (const auto& [name, value] : CountersOf(accounting)) {
    builder_.tables().counters.push_back(
        {.name = builder_.InternText(name), .value = value});
  }
}

}  // namespace profd::history
