// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/profile_merge.h"

#include <algorithm>
#include <utility>

namespace profd {

void ProfileMerger::Add(const Profile& part) {
  AddMetadata(part.metadata);
  builder_.Add(part.accounting);
  symbol_tables_evicted_ = part.symbol_tables_evicted;
  std::vector<StringId> strings(part.strings.size());
  for (StringId id = 0; id < strings.size(); ++id) {
    strings[id] = builder_.Intern(part.String(id));
  }
  AddSamples(part, strings);
}

void ProfileMerger::AddSamples(const Profile& part,
                               const std::vector<StringId>& strings) {
  std::vector<FrameId> frames;
  frames.reserve(part.frames.size());
  for (Frame frame : part.frames) {
    for (StringId Frame::* text :
         {&Frame::name, &Frame::object, &Frame::build_id, &Frame::file,
          &Frame::function}) {
      frame.*text = strings[frame.*text];
    }
    frames.push_back(builder_.AddFrame(frame));
  }
  std::vector<CallStackId> stacks(part.stacks.size());
  std::vector<FrameId> stack;
  for (CallStackId id = 0; id < stacks.size(); ++id) {
    stack.clear();
    for (const FrameId frame : part.Stack(id)) stack.push_back(frames[frame]);
    stacks[id] = builder_.AddStack(stack);
  }
  for (ProfileSample sample : part.samples) {
    sample.comm = strings[sample.comm];
    sample.cgroup = strings[sample.cgroup];
    sample.user = stacks[sample.user];
    sample.kernel = stacks[sample.kernel];
    builder_.AddSample(sample);
  }
}

void ProfileMerger::AddMetadata(const CaptureMetadata& metadata) {
  if (std::exchange(empty_, false)) {
    metadata_ = metadata;
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
  Profile profile = std::move(builder_).Finish(std::move(metadata_));
  profile.symbol_tables_evicted = symbol_tables_evicted_;
  return profile;
}

}  // namespace profd
