// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/file.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Where a report goes. Opened before the capture, so that a path that cannot
// be written costs no capture. A regular file appears whole or not at all;
// anything else that exists (a device, a FIFO) is written to as it is, never
// replaced; a symbolic link keeps pointing where it did.
class ReportFile {
 public:
  // Empty or "-": stdout.
  static ksym::Result<ReportFile> Open(const std::string& path);

  // The next bytes. After a failure there is no file.
  ksym::Status Append(std::string_view bytes);
  // When everything is there: the file appears.
  ksym::Status Commit();
  // The end of a writer, with what became of it: if all is well the file
  // appears. A reader that went away, such as `head`, is no failure.
  ksym::Status Finish(ksym::Status written);
  // Whether it is a file of its own, and no stream or device.
  bool is_regular() const { return atomic_.has_value(); }

 private:
  ReportFile() = default;

  std::optional<ksym::AtomicFile> atomic_;
  ksym::UniqueFd direct_;  // neither: stdout
};

}  // namespace profd
