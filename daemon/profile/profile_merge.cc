// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/profile_merge.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace profd {

namespace {

// Gives what samples of a part need to the builder, each once.
class PartAdder {
 public:
  PartAdder(const Profile& part, ProfileBuilder& builder)
      : part_(part),
        builder_(builder),
        strings_(part.strings.size()),
        frames_(part.frames.size()),
        stacks_(part.stacks.size()),
        label_sets_(part.label_sets.size()) {}

  StringId String(StringId id) {
    auto& known = strings_[id];
    if (!known) known = builder_.Intern(part_.String(id));
    return *known;
  }
  CallStackId Stack(CallStackId id) {
    auto& known = stacks_[id];
    if (!known) {
      stack_.clear();
      for (const FrameId frame : part_.Stack(id)) {
        stack_.push_back(AddFrame(frame));
      }
      known = builder_.AddStack(stack_);
    }
    return *known;
  }
  LabelSetId Labels(LabelSetId id) {
    auto& known = label_sets_[id];
    if (!known) {
      std::vector<InternedLabel> labels;
      for (const InternedLabel& label : part_.label_sets.Get(id)) {
        labels.push_back(
            {.key = String(label.key), .value = String(label.value)});
      }
      known = builder_.AddLabels(labels);
    }
    return *known;
  }

 private:
  FrameId AddFrame(FrameId id) {
    auto& known = frames_[id];
    if (!known) {
      Frame frame = part_.frames[id];
      for (StringId Frame::* text :
           {&Frame::name, &Frame::object, &Frame::build_id, &Frame::file,
            &Frame::function}) {
        frame.*text = String(frame.*text);
      }
      known = builder_.AddFrame(frame);
    }
    return *known;
  }

  const Profile& part_;
  ProfileBuilder& builder_;
  std::vector<std::optional<StringId>> strings_;
  std::vector<std::optional<FrameId>> frames_;
  std::vector<std::optional<CallStackId>> stacks_;
  std::vector<std::optional<LabelSetId>> label_sets_;
  std::vector<FrameId> stack_;
};

}  // namespace

void ProfileMerger::Add(const Profile& part) {
  AddMetadata(part.metadata);
  symbol_tables_evicted_ = part.symbol_tables_evicted;
  if (part.thread_sums.count != 0) thread_sums_ += part.thread_sums;
  const std::vector<SampleKindId> places = AddKinds(part.metadata.kinds);
  PartAdder adder(part, builder_);
  Accounting accounting = part.accounting;
  for (ProfileSample sample : part.samples) {
    if (!IsWanted(part.metadata.kinds[sample.kind])) {
      // A sample that is not shown is not counted either: the parts of the
      // accounting add up to what the profile has.
      accounting.taken -= sample.count;
      accounting.emitted -= sample.count;
      continue;
    }
    sample.kind = only_kind_ ? SampleKindId{0} : places[sample.kind];
    // A whole has no use for them, and far fewer samples without.
    sample.slice = kNoSlice;
    sample.comm = adder.String(sample.comm);
    sample.cgroup = adder.String(sample.cgroup);
    sample.labels = adder.Labels(sample.labels);
    sample.user = adder.Stack(sample.user);
    sample.kernel = adder.Stack(sample.kernel);
    builder_.AddSample(sample);
  }
  builder_.Add(accounting);
}

bool ProfileMerger::IsWanted(const SampleKind& kind) const {
  return !only_kind_ || kind.name == *only_kind_;
}

// The places of a part's kinds.
std::vector<SampleKindId> ProfileMerger::AddKinds(
    const std::vector<SampleKind>& kinds) {
  std::vector<SampleKind>& all = metadata_.kinds;
  std::vector<SampleKindId> places;
  for (const SampleKind& kind : kinds) {
    const auto found = std::ranges::find_if(all, [&](const SampleKind& other) {
      return other.name == kind.name && other.unit == kind.unit;
    });
    places.push_back(static_cast<SampleKindId>(found - all.begin()));
    if (found == all.end()) all.push_back(kind);
  }
  return places;
}

void ProfileMerger::AddMetadata(const CaptureMetadata& metadata) {
  if (std::exchange(empty_, false)) {
    metadata_ = metadata;
    if (only_kind_ && only_kind_->empty()) {
      only_kind_ = metadata.kinds.front().name;
    }
    return;
  }
  metadata_.duration_ns += metadata.duration_ns;
  metadata_.cpus = metadata.cpus;
  metadata_.kernel_table = metadata.kernel_table;
  metadata_.unwind_tables = metadata.unwind_tables;
  for (const std::string& warning : metadata.warnings) {
    if (std::ranges::find(metadata_.warnings, warning) ==
        metadata_.warnings.end()) {
      metadata_.warnings.push_back(warning);
    }
  }
}

Profile ProfileMerger::Finish() && {
  std::vector<SampleKind>& kinds = metadata_.kinds;
  const auto only = std::ranges::find_if(
      kinds, [this](const SampleKind& kind) { return IsWanted(kind); });
  if (only_kind_ && only != kinds.end()) kinds = {SampleKind(*only)};
  Profile profile = std::move(builder_).Finish(std::move(metadata_));
  profile.symbol_tables_evicted = symbol_tables_evicted_;
  profile.thread_sums = std::move(thread_sums_);
  return profile;
}

}  // namespace profd
