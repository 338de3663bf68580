// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>

#include "ksym/base/result.h"

namespace ksym {

// Says whose file may name whom. Any user can make a root directory with any
// file under any path in it, and can write any build-id into a file; what a
// user cannot do is to give a file to somebody else. So neither a path nor a
// build-id is a reason to believe a file, and its owner is. All that names code
// asks here; docs/security.md has the rules in full.

// The users who can change a file's bytes.
struct FileOwner {
  uint64_t device = 0;  // st_dev
  uid_t user = 0;       // as this process's user namespace counts
  gid_t group = 0;
  mode_t mode = 0;
  // A program answers for the file system (FUSE), and says what it likes of
  // owners.
  bool is_served = false;
};

// An open file's owner, also where it is only held (O_PATH). Fails as fstat(2)
// does. Two system calls.
Result<FileOwner> OwnerOf(int fd);
// Whether its file system is FUSE, or does not say what it is.
bool IsServed(int fd);
// The same of one whose status is known already.
FileOwner OwnerOf(const struct stat& status, bool is_served);

// Whether only root and `self`, the user of this program, can have written the
// file.
bool IsOfMachine(const FileOwner& file, uid_t self);

// Whether `debug` may say what the code of the file `program` is called: it is
// of the machine, or its owner is that of `program` and could have written the
// names into that.
bool MayName(const FileOwner& debug, const FileOwner& program, uid_t self);

// Says whose word counts for a build-id that two different files have. kBoth:
// the same owner has them, and the later one is taken. kNeither: two users
// claim it, and nothing tells which of them made it up.
enum class Claim : uint8_t { kFirst, kSecond, kBoth, kNeither };
Claim Judge(const FileOwner& first, const FileOwner& second, uid_t self);

// The users that a process has or can take back at any time.
struct ProcessUsers {
  uid_t effective = 0;
  uid_t saved = 0;
};

// Whether `file` may say what code a process made at run time: it is root's, or
// that of the one user that the process has, and nobody else may write to it.
bool MayNameMemory(const FileOwner& file, const ProcessUsers& process);

}  // namespace ksym
