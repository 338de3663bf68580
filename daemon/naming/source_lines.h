// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "daemon/naming/line_files.h"
#include "daemon/profile/profile.h"
#include "ksym/kernel/kernel_timeline.h"
#include "ksym/symbolizer.h"

namespace profd {

struct SourceLineOptions {
  enum class Inlines : uint8_t { kOmit, kShow };
  enum class Lines : uint8_t { kOmit, kShow };
  Inlines inlines = Inlines::kOmit;  // a frame for each inlined call
  Lines lines = Lines::kOmit;        // file and line of frames
  ksym::SymbolizerOptions::Demangle demangle =
      ksym::SymbolizerOptions::Demangle::kOn;
  // Tells where the functions of kernel modules are, which have no lines
  // without it; borrowed.
  const ksym::KernelTimeline* kernel = nullptr;
};

struct SourceLineCounts {
  uint64_t frames = 0;   // of users, different ones
  uint64_t found = 0;    // of those, with lines
  uint64_t inlined = 0;  // frames added
};

// Adds what `files` know to the frames of a profile: where they are in the
// source, and a frame for each call that was inlined there. The most sampled
// files come first, as the files have a deadline. Frames without a name get one
// where debug data have it. Cost: what the files take, a lookup per frame, and
// a new table of stacks.
SourceLineCounts AddSourceLines(LineFiles& files,
                                const SourceLineOptions& options,
                                Profile& profile);

}  // namespace profd
