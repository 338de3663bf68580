// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace profd {
namespace {

// The mount namespace's inode is its number; 0: the process is gone, or not
// ours to see.
uint64_t MountsOf(uint32_t pid) {
  struct stat status = {};
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/mnt";
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

TableHost TableHost::OfThisMachine(std::shared_ptr<DeferredOpener> opener) {
  return {.hold =
              [opener = std::move(opener)](uint32_t pid,
                                           const ksym::Mapping& mapping) {
                return opener ? opener->HoldLocal(pid, mapping)
                              : ksym::HoldMappedOrHostFile(pid, mapping);
              },
          .mounts_of = MountsOf,
          .is_trusted =
              [](const ksym::FileOwner& owner) {
                return ksym::IsOfMachine(owner, ::geteuid());
              },
          .now = SteadyClock::now};
}

}  // namespace profd
