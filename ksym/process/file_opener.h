// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace ksym {

// Opens the files of processes for who reads them. Thread-safe.
//
// A file system may not answer, so a program that must not wait for the files
// of others gives an opener that does not: what takes too long is an error with
// ETIMEDOUT, what is too large to be got otherwise one with EFBIG.
class FileOpener {
 public:
  FileOpener() = default;
  FileOpener(const FileOpener&) = delete;
  FileOpener& operator=(const FileOpener&) = delete;
  virtual ~FileOpener() = default;

  // See HoldMappedOrHostFile().
  virtual Result<OpenedFile> Hold(uint32_t pid, const Mapping& mapping) = 0;
  // See HoldHostFile(). Local files only.
  virtual Result<OpenedFile> HoldOfHost(const Mapping& mapping) = 0;
  // See OpenHeld(). `file` is from one of these.
  virtual Status Open(OpenedFile& file) = 0;
  // See OpenFileOfProcess(), and with pid 0 OpenFileOfHost().
  virtual Result<OpenedFile> OpenPath(uint32_t pid, const std::string& path,
                                      Links links) = 0;

  // How many files were given up, for want of an answer, since the start.
  virtual uint64_t given_up() const { return 0; }
  // A sentence for each file system that did not answer, since the last call.
  virtual std::vector<std::string> TakeWarnings() { return {}; }
};

// Opens files at once and waits for as long as it takes.
std::shared_ptr<FileOpener> DirectFileOpener();

}  // namespace ksym
