// SPDX-License-Identifier: Apache-2.0
// The part of SymbolFiles that finds files again by their build-ids.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "ksym/symbolizer_files.h"

namespace ksym {

void SymbolFiles::ClaimBuildId(Files::iterator file) {
  const auto [at, is_new] =
      by_build_id_.try_emplace(file->second.build_id, Claimed{file});
  Claimed& claimed = at->second;
  if (is_new || claimed.file == file) return;
  switch (Judge(claimed.file->second.owner, file->second.owner, ::geteuid())) {
    case Claim::kFirst:
      break;
    case Claim::kSecond:
      claimed = {file};
      break;
    case Claim::kBoth:
      claimed.file = file;
      break;
    case Claim::kNeither:
      claimed.is_disputed = true;
      break;
  }
}

SymbolFile* SymbolFiles::LoadAgain(std::string_view build_id) {
  const auto found = by_build_id_.find(build_id);
  if (found == by_build_id_.end() || found->second.is_disputed) return nullptr;
  files_.splice(files_.begin(), files_, found->second.file);
  SymbolFile& file = files_.front().second;
  CloseIfChanged(file);
  if (file.symbols && !file.symbols->has_full_table() && fetch_ &&
      !file.fetch_asked) {
    Drop(file);
  }
  if (file.state == SymbolFile::State::kPinned) {
    Read(file.read_for, std::string(file.path), file);
  }
  // What has been written in its place is not the file that was asked for.
  return file.build_id == build_id ? &file : nullptr;
}

Result<Symbolizer::ProgramFile> SymbolFiles::OpenAgain(
    std::string_view build_id) const {
  const auto found = by_build_id_.find(build_id);
  if (found == by_build_id_.end()) {
    return Fail(ErrorCode::kNotFound, "no file of that build-id is known");
  }
  const SymbolFile& file = found->second.file->second;
  if (found->second.is_disputed) {
    return Fail(ErrorCode::kPermission,
                std::string(file.path) +
                    ": files of several users claim the "
                    "build-id " +
                    std::string(build_id));
  }
  if (file.fd() < 0 || file.build_id != build_id || !file.IsUnchanged()) {
    return Fail(ErrorCode::kNotFound,
                std::string(file.path) + ": not open any more, or changed");
  }
  OpenedFile copy;
  copy.fd = UniqueFd(::fcntl(file.fd(), F_DUPFD_CLOEXEC, 0));
  if (!copy.fd.valid()) return FailErrno(errno, std::string(file.path));
  copy.is_held = file.opened.is_held;
  copy.size = file.opened.size;
  copy.mtime_ns = file.opened.mtime_ns;
  copy.owner = file.owner;
  copy.remote = file.opened.remote;
  copy.room = file.opened.room;
  auto opened = options_.opener->Open(copy);
  if (!opened) {
    return Fail(std::move(opened.error()).WithContext(file.path));
  }
  return Symbolizer::ProgramFile{
      ByteSource::OfFile(
          std::move(copy.fd), file.opened.size,
          {.owner = OwnerOfCopy(copy), .room = std::move(copy.room)}),
      FinderOf(file)};
}

}  // namespace ksym
