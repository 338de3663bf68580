// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// bcc's multi-line layout, the rarest stack first, equal counts by text:
//     vfs_read+0x9d [kernel]        kernel frames, leaf first
//     --                            with the delimiter, between both stacks
//     main+0x12 [spin]              user frames, leaf first
//     -                spin (1234)  comm and pid; by tid: comm and tid
//         99                        samples; then an empty line
// A frame without a name is printed as it is, "[libfoo.so]" or "[unknown]",
// the latter with the file if there is one. With addresses each frame has its
// own in front: 0x%-16x for the kernel's, 0x%016x for the user's. A stack
// that lacks its root ends in "[truncated]".
void WriteText(const Profile& profile, const OutputOptions& options,
               OutputBuffer& out);

// What bcc prints before it starts sampling.
struct TextHeaderOptions {
  enum class Stacks : uint8_t { kUserAndKernel, kUser, kKernel };
  uint64_t frequency_hz = 0;  // or, when 0:
  uint64_t count_period = 0;
  std::vector<uint32_t> pids;  // both empty: all threads
  std::vector<uint32_t> tids;
  // "cgroup /a/b": only of threads in it; empty: any.
  std::string filter = {};
  Stacks stacks = Stacks::kUserAndKernel;
  std::string cpus;                        // empty: all of them
  std::optional<double> duration_seconds;  // nothing: until Ctrl-C
};

// One line with its newline, e.g.
// "Sampling at 99 Hertz of all threads by user + kernel stack for 10 secs."
std::string TextHeader(const TextHeaderOptions& options);

}  // namespace profd
