// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace profd {

// What pprof and JSON say of a sample beside its stacks. JSON has the command
// and the pid in any case, and the host in its metadata.
struct SampleLabels {
  bool host = false;
  bool pid = true;
  bool comm = true;
  // Where the profile has cgroups; the latter two are read out of the path.
  bool cgroup = true;
  bool unit = true;
  bool container_id = true;
  // Samples of this process have "self"; 0: of none.
  uint32_t self_pid = 0;
};

// How a profile is written; the formats that an option has no meaning for
// ignore it.
struct OutputOptions {
  enum class By : uint8_t { kComm, kPid, kTid };
  By by = By::kComm;         // --by: what samples are grouped and shown by
  bool annotations = false;  // -a: "_[k]" and "_[i]" in folded stacks
  bool delimiter = false;    // -d: a mark between user and kernel frames
  bool addresses = false;    // -A: run-time addresses in text and JSON
  SampleLabels labels = {};
};

}  // namespace profd
