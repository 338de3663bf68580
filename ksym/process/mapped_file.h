// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ksym/base/result.h"
#include "ksym/base/trust.h"
#include "ksym/base/unique_fd.h"
#include "ksym/process/file_systems.h"
#include "ksym/process/process_image.h"

namespace ksym {

// Where a file was found whose file system may not answer.
struct RemoteFile {
  uint32_t pid = 0;
  Mapping mapping;  // of what a path leads to: the path alone
};

// An opened file and what fstat(2) said of it.
struct OpenedFile {
  UniqueFd fd;
  // A held one (O_PATH) cannot be read, only kept; see OpenHeld().
  bool is_held = false;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t inode = 0;
  // The file's, also where the descriptor is a copy's. Until it is known it is
  // nobody who is believed.
  FileOwner owner = {.user = 65534, .mode = S_IWOTH};
  // Not null: its file system may not answer. While it is held no system call
  // may be made with its descriptor but to close it or to give it away; once it
  // is open, the descriptor is that of a copy in memory, which nobody can
  // change.
  std::shared_ptr<const RemoteFile> remote = {};
  // Lives as long as a copy does.
  std::shared_ptr<const void> room = {};
  // Not empty: only the inode was compared, and that of the overlay's layers
  // may be equal; it is the mapped file if it has this build-id (bytes).
  std::string mapped_build_id = {};
  // Whether the mapping's device and inode stand for this file and no other.
  // They do not where the path led to it and the device could not be compared,
  // and where a file system has several files of one number (overlay, btrfs).
  bool is_only_one = false;
};

// The file's owner if the descriptor is that of a copy, which cannot tell.
std::optional<FileOwner> OwnerOfCopy(const OpenedFile& file);

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
// A process whose first thread has ended is read through one of its others.
// What was opened must be what is mapped: the inode must be equal, and the
// device, except on overlayfs and btrfs, whose fstat(2) device never is the
// one that /proc/PID/maps shows; see OpenedFile::mapped_build_id.
// kNotFound: gone; kPermission; kInvalid: another file is there now;
// kUnsupported: not a regular file, or a kernel without openat2 (< 5.6).
Result<OpenedFile> OpenMappedFile(uint32_t pid, const Mapping& mapping);
// The same file, but only held, at half of the cost: whatever becomes of its
// process and its name, it can be opened later. With `local` the file and what
// leads to it are on local file systems, or the error IsRemote() and nothing
// was asked that may not answer. Borrows it.
Result<OpenedFile> HoldMappedFile(uint32_t pid, const Mapping& mapping,
                                  FileSystems* local = nullptr);
bool IsRemote(const Error& error);
// Makes a held file one that can be read; nothing if it is one already. Fails
// as open(2) does; then it is held as before.
Status OpenHeld(OpenedFile& file);

// The same for a file of this machine by its path, which is all that is left
// of a process in a replayed capture. Inode 0 is not compared: a profile that
// was written by hand knows none.
Result<OpenedFile> OpenHostFile(const Mapping& mapping);
Result<OpenedFile> HoldHostFile(const Mapping& mapping,
                                FileSystems* local = nullptr);

// The process's, or, where it is gone (kNotFound) and the inode can tell, this
// machine's: what a process mapped is most often still there after it.
Result<OpenedFile> HoldMappedOrHostFile(uint32_t pid, const Mapping& mapping,
                                        FileSystems* local = nullptr);

// Opens a regular file by its path as the process sees it, or as this one
// does; no link leads out of that root, or none is followed (ELOOP). `local`:
// as above, and what a link leads to counts as remote.
enum class Links : uint8_t { kFollowInside, kRefuse };
Result<OpenedFile> OpenFileOfProcess(uint32_t pid, const std::string& path,
                                     Links links = Links::kFollowInside,
                                     FileSystems* local = nullptr);
Result<OpenedFile> OpenFileOfHost(const std::string& path,
                                  Links links = Links::kFollowInside,
                                  FileSystems* local = nullptr);

}  // namespace ksym
