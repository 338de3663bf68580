// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "daemon/output/hot_spots.h"
#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

struct OverviewOptions {
  size_t columns = 80;  // no line is wider, from 40 on
  size_t functions = 15;
  OutputOptions::By by = OutputOptions::By::kComm;  // what commands are
  Colours colours = Colours::kOff;
};

// What was found, for a person at a terminal: a line about the capture, one
// with the busiest commands, and a table of the hottest functions with their
// modules and the commands that spent most in them.
//   198 samples, 0 lost; cpu-clock at 99 Hz for 2.0 s on host
//   by command: spin 88.9 %, sh 10.1 %, 2 others 1.0 %
//     self  total  function  module  command
//    88.9%  88.9%  Hot       spin    spin
// Cost: goes over every frame of every stack.
void WriteOverview(const Profile& profile, const OverviewOptions& options,
                   OutputBuffer& out);

}  // namespace profd
