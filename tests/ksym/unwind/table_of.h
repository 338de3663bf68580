// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/unwind/unwind_table.h"

namespace ksym {

inline Result<UnwindTable> TableOf(const ByteSource& source) {
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  return BuildUnwindTable(source, *image);
}

inline Result<UnwindTable> TableOfFile(const std::string& path) {
  auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return FailErrno(errno, path);
  return TableOf(ByteSource::OfFile(std::move(*fd),
                                    static_cast<uint64_t>(status.st_size)));
}

}  // namespace ksym
