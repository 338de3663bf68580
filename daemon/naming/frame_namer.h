// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "daemon/profile/profile.h"
#include "daemon/profile/raw_stack_table.h"
#include "ksym/process/process_image.h"

namespace profd {

// Names user frames of one kind that is not native code. The resolver calls it
// in the thread in which it names.
class FrameNamer {
 public:
  FrameNamer() = default;
  FrameNamer(const FrameNamer&) = delete;
  FrameNamer& operator=(const FrameNamer&) = delete;
  virtual ~FrameNamer() = default;

  // Appends what `frame` stands for, innermost first: calls that are inlined
  // there, then the function that they are in. `image` is that of the process,
  // null where it is not known. Asked once for each frame that differs, per
  // process and interval; for frames of a RuntimeFrameTable, which do not
  // depend on the process, per interval.
  virtual void Name(const RawFrame& frame, const ksym::ProcessImage* image,
                    ProfileBuilder& builder,
                    std::vector<FrameId>& leaf_first) = 0;
};

}  // namespace profd
