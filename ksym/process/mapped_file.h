#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"
#include "ksym/process/process_image.h"

namespace ksym {

// An opened file and what fstat(2) said of it.
struct OpenedFile {
  UniqueFd fd;
  // A held one (O_PATH) cannot be read, only kept; see OpenHeld().
  bool is_held = false;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  // Not empty: only the inode was compared, and that of the overlay's layers
  // may be equal; it is the mapped file if it has this build-id (bytes).
  std::string mapped_build_id = {};
};

// A file's modification time in nanoseconds since the epoch.
int64_t MtimeNs(const struct stat& status);

// Opens the regular file that `mapping` of the process shows, read-only and
// without blocking; what is no regular file is looked at but not opened. Tried
// in this order:
// 1. /proc/PID/map_files/START-END: the mapped file itself, also when it was
//    deleted, replaced or is a memfd. Needs CAP_SYS_ADMIN or
//    CAP_CHECKPOINT_RESTORE.
// 2. The path under /proc/PID/root, where no link or ".." leads out of that
//    root (RESOLVE_IN_ROOT); then without a trailing " (deleted)", for a file
//    whose name really ends so or that came back.
// Of a process whose first thread has ended, through one of its others.
// What was opened must be what is mapped: the inode must be equal, and the
// device, except on overlayfs and btrfs, whose fstat(2) device never is the
// one that /proc/PID/maps shows; see OpenedFile::mapped_build_id.
// kNotFound: gone; kPermission; kInvalid: another file is there now;
// kUnsupported: not a regular file, or a kernel without openat2 (< 5.6).
Result<OpenedFile> OpenMappedFile(uint32_t pid, const Mapping& mapping);
// The same file, but only held, at half of the cost: whatever becomes of its
// process and its name, it can be opened later.
Result<OpenedFile> HoldMappedFile(uint32_t pid, const Mapping& mapping);
// Makes a held file one that can be read; nothing if it is one already. Fails
// as open(2) does; then it is held as before.
Status OpenHeld(OpenedFile& file);

// The same for a file of this machine by its path, which is all that is left
// of a process in a replayed capture. Inode 0 is not compared: a profile that
// was written by hand knows none.
Result<OpenedFile> OpenHostFile(const Mapping& mapping);
Result<OpenedFile> HoldHostFile(const Mapping& mapping);

// The process's, or, where it is gone (kNotFound) and the inode can tell, this
// machine's: what a process mapped is most often still there after it.
Result<OpenedFile> HoldMappedOrHostFile(uint32_t pid, const Mapping& mapping);

// Opens a regular file by its path as the process sees it, or as this one
// does; no link leads out of that root.
Result<OpenedFile> OpenFileOfProcess(uint32_t pid, const std::string& path);
Result<OpenedFile> OpenFileOfHost(const std::string& path);

// A directory, and a process's root, both O_PATH.
Result<UniqueFd> OpenRoot(const std::string& path);
Result<UniqueFd> OpenRootOf(uint32_t pid);

// Opens `path` below `root` as openat2 with RESOLVE_IN_ROOT does it, and
// RESOLVE_NO_SYMLINKS too if asked. Regular files only.
enum class Links : uint8_t { kFollowInside, kRefuse };
Result<UniqueFd> OpenInRoot(int root, const std::string& path, Links links);

}  // namespace ksym
