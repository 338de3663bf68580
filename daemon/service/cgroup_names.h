// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/profile/raw_profile.h"
#include "daemon/service/counters.h"
#include "ksym/base/unique_fd.h"
#include "ksym/process/process_image.h"

namespace profd {

// Finds the paths of sampled processes' cgroups. Where the kernel has the
// second version of cgroups the sampler tells the id of each process's, also of
// one that has ended, and the cgroup's file system turns that into a path. In
// the first version, or where the process is in the root of the second, its
// /proc/PID/cgroup says it: once, while it lives. Not thread-safe.
// Memory: a path per cgroup and 100 bytes per process sampled within a minute.
// Cost: a look-up per process and drain; 10 to 20 us at first sight.
class CgroupNames {
 public:
  // The counters must live longer.
  explicit CgroupNames(ServiceCounters& counters);

  // A process was sampled in the cgroup of that id; 0: not known.
  void NoteSample(const ksym::ProcessId& process, uint64_t cgroup);
  // The path of a process that was sampled; empty: not known. Valid until the
  // next drain.
  std::string_view PathOfProcess(const ksym::ProcessId& process);
  // Fills in the cgroups of the profile's processes. Samples of those that are
  // not known are counted.
  void Label(RawProfile& profile);

 private:
  using Path = std::shared_ptr<const std::string>;  // null: not known
  // Stays over an exec, in which a process keeps its cgroup.
  struct Key {
    uint32_t pid = 0;
    uint64_t start_ns = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    uint64_t cgroup = 0;
    uint64_t last_seen = 0;  // in which drain
    Path path;
  };

  const Path& Find(const ksym::ProcessId& process);
  Path PathOf(const ksym::ProcessId& process, uint64_t cgroup);
  Path PathOfId(uint64_t cgroup);
  void Forget();

  ServiceCounters& counters_;
  // The root of the second version's hierarchy, and its path.
  ksym::UniqueFd mount_;
  std::string mount_path_;
  std::map<Key, Entry> processes_;
  std::map<uint64_t, Path> paths_;  // by id, which is never used again
  uint64_t drains_ = 0;
};

// The path in the text of /proc/PID/cgroup that says most: that of the second
// version, unless it is the root; then systemd's own hierarchy of the first
// version, then any other that is not in the root.
std::string ChooseCgroup(std::string_view text);

}  // namespace profd
