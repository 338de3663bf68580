// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "daemon/oneshot/report_target.h"
#include "ksym/base/output_file.h"

namespace profd {

ksym::Result<ReportFile> ReportFile::Open(const std::string& path) {
  ReportFile file;
  if (IsStdout(path)) {
    const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
      return ksym::Fail(ksym::ErrorCode::kIo,
                        "stdout is closed: give a file with -o");
    }
    return file;
  }
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return ksym::FailErrno(EISDIR, path);
  // rename(2) would put a file in its place.
  if (exists && !S_ISREG(status.st_mode)) {
    file.direct_ =
        ksym::UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!file.direct_.valid()) return ksym::FailErrno(errno, path);
    return file;
  }
  const auto target = ksym::ResolveLinks(path);
  if (!target) return ksym::Fail(target.error());
  auto atomic = ksym::AtomicFile::Create(*target);
  if (!atomic) return ksym::Fail(std::move(atomic.error()));
  file.atomic_.emplace(std::move(*atomic));
  return file;
}

ksym::Status ReportFile::Append(std::string_view bytes) {
  if (atomic_) return atomic_->Write(bytes);
  return ksym::WriteAll(direct_.valid() ? direct_.get() : STDOUT_FILENO, bytes);
}

ksym::Status ReportFile::Commit() {
  return atomic_ ? atomic_->Commit() : ksym::Status();
}

ksym::Status ReportFile::Finish(ksym::Status written) {
  if (written) written = Commit();
  if (!written && written.error().sys_errno() == EPIPE) return {};
  return written;
}

}  // namespace profd
