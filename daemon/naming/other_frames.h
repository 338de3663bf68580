// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "daemon/naming/recent_slot.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/raw_stack_table.h"
#include "ksym/base/keyed_hash.h"

namespace profd {

// The frames that others than native code stand for. A stack of an interpreter
// has dozens, and in the next one most of them come again.
class OtherFrames {
 public:
  // The frames that `raw` stands for, leaf first. `name(frames)` fills them in
  // when they are not known yet. They are valid as long as this.
  template <typename Name>
  const std::vector<FrameId>& Find(const RawFrame& raw, const Name& name) {
    if (recent_.empty()) recent_.resize(kRecent);
    Recent& recent = recent_[RecentSlot(raw.unit ^ raw.value, kRecent)];
    if (recent.frames == nullptr || recent.raw != raw) {
      const auto [at, is_new] = all_.try_emplace(raw);
      if (is_new) name(at->second);
      recent = {raw, &at->second};
    }
    return *recent.frames;
  }

 private:
  struct Hash {
    size_t operator()(const RawFrame& frame) const {
      return ksym::HashWords(frame.kind, frame.unit, frame.value);
    }
  };
  struct Recent {
    RawFrame raw;
    const std::vector<FrameId>* frames = nullptr;
  };
  static constexpr size_t kRecent = 512;

  std::unordered_map<RawFrame, std::vector<FrameId>, Hash> all_;
  std::vector<Recent> recent_;  // or none: most processes have no such frames
};

}  // namespace profd
