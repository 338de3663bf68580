// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/trust.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>

namespace ksym {
namespace {

constexpr uid_t kRoot = 0;
constexpr gid_t kGroupOfRoot = 0;
// Stands for every user whom a namespace does not know, so for no one.
constexpr uid_t kOverflowUser = 65534;

bool EverybodyMayWrite(const FileOwner& file) {
  return (file.mode & S_IWOTH) != 0;
}

// Access lists show in these bits as well.
bool GroupMayWrite(const FileOwner& file) {
  return (file.mode & S_IWGRP) != 0 && file.group != kGroupOfRoot;
}

bool HaveSameOwner(const FileOwner& a, const FileOwner& b) {
  if (a.is_served != b.is_served) return false;
  if (a.is_served && a.device != b.device) return false;
  return a.user == b.user && a.user != kOverflowUser;
}

}  // namespace

Result<FileOwner> OwnerOf(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return FailErrno(errno, "owner of a file");
  return OwnerOf(status, IsServed(fd));
}

bool IsServed(int fd) {
  struct statfs system = {};
  return ::fstatfs(fd, &system) != 0 || system.f_type == FUSE_SUPER_MAGIC;
}

FileOwner OwnerOf(const struct stat& status, bool is_served) {
  return {.device = status.st_dev,
          .user = status.st_uid,
          .group = status.st_gid,
          .mode = status.st_mode,
          .is_served = is_served};
}

// What this user shares with a group is the user's own concern; who reads
// profiles of root's files did not choose root's groups.
bool IsOfMachine(const FileOwner& file, uid_t self) {
  if (file.is_served || EverybodyMayWrite(file)) return false;
  return file.user == kRoot ? !GroupMayWrite(file) : file.user == self;
}

bool MayName(const FileOwner& debug, const FileOwner& program, uid_t self) {
  if (IsOfMachine(debug, self)) return true;
  if (EverybodyMayWrite(debug) || !HaveSameOwner(debug, program)) return false;
  return !GroupMayWrite(debug) || debug.group == program.group;
}

Claim Judge(const FileOwner& first, const FileOwner& second, uid_t self) {
  const bool is_first = IsOfMachine(first, self);
  const bool is_second = IsOfMachine(second, self);
  if (is_first != is_second) return is_first ? Claim::kFirst : Claim::kSecond;
  return is_first || HaveSameOwner(first, second) ? Claim::kBoth
                                                  : Claim::kNeither;
}

bool MayNameMemory(const FileOwner& file, const ProcessUsers& process) {
  if (EverybodyMayWrite(file)) return false;
  return file.user == kRoot ||
         (file.user == process.effective && process.effective == process.saved);
}

}  // namespace ksym
