// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// What makes code while it runs, as far as it is known by its program or
// library.
enum class Runtime : uint8_t {
  kUnknown,
  kNode,
  kJava,
  kPython,
  kDotnet,
  kRuby,
  kKnownJava,  // its own frames are in stacks
};

// One thing that keeps a profile from saying where time went.
struct Obstacle {
  // Why frames have no name; kNone: stacks are incomplete, as `state` says.
  ksym::Unresolved reason = ksym::Unresolved::kNone;
  StackState state = StackState::kWhole;
  // The file's path, "[kernel]", or for code without a file the command.
  std::string subject;
  std::string build_id;
  Runtime runtime = Runtime::kUnknown;  // of code without a file
  uint32_t pid = 0;                     // one process that has it; 0: not known
  uint64_t innermost = 0;               // samples whose innermost frame it is
  uint64_t samples = 0;                 // samples with such a frame, or stack
};

struct Obstacles {
  uint64_t samples = 0;     // all of them
  uint64_t innermost = 0;   // whose innermost frame has no name
  uint64_t callers = 0;     // of the others, with another one that has none
  uint64_t incomplete = 0;  // with an incomplete stack
  // Each with one sample in a hundred at least, counting innermost frames of
  // files and all frames of code without a file; the largest first.
  std::vector<Obstacle> causes;
};

// Cost: goes over every frame of every stack.
Obstacles FindObstacles(const Profile& profile);

// What installs a file's symbols, e.g. "postgresql-15-dbgsym"; empty: not
// known.
using PackageFinder = std::function<std::string(const std::string& path,
                                                std::string_view build_id)>;

// For stderr: nothing where every sample is whole and has its name; else a line
// with the shares, and one for each of the three largest causes with its cure.
//   without a name: 40.1 % of samples, and callers in 12.0 %; incomplete
//   stacks: 2.0 %
//     40.1 % /usr/bin/x is stripped: install x-dbgsym, or give --debuginfod
std::vector<std::string> ObstacleLines(const Obstacles& obstacles,
                                       const PackageFinder& package_of);

}  // namespace profd
