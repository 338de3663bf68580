// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/history/layout.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// The files of a history in that folder by sequence number. A journal whose
// segment is there as well is left out: its writer was about to remove it.
// kNotFound: there is no such folder. kLimit: there are too many.
ksym::Result<std::vector<FileName>> ListFiles(const std::string& folder);

// The bytes of one of them: of a regular file, not through a link.
ksym::Result<std::string> ReadHistoryFile(const std::string& folder,
                                          const FileName& name);

// How the files of a folder were read.
struct FilesRead {
  uint64_t files = 0;       // that were read
  uint64_t bad_files = 0;   // that were not used
  uint64_t torn_bytes = 0;  // of journals behind their last good record
  // The files that were not used, in words; the first ones of many.
  std::vector<std::string> warnings;
};

// A file that was read.
struct FileContent {
  FileName name;
  uint64_t bytes = 0;
  Tables tables;
  size_t torn_bytes = 0;  // of a journal, behind its last good record
};

// Takes a file, the oldest first. kLimit ends the reading; after another
// failure the file counts as one that was not used.
using TakeFile = std::function<ksym::Status(const FileContent& file)>;

// Reads the files of a history that may have parts of a time, also while it is
// written or on another machine: each whole, one at a time. `begin` gives what
// takes them. It is called anew where a file vanished meanwhile, as a journal
// became a segment: what was taken before does not count. Asks `is_over` before
// each file; where that says so, and where `take` does, the error is kLimit.
// Fails where the folder cannot be read or holds no history.
ksym::Result<FilesRead> ReadFiles(const std::string& folder,
                                  const Selection& selection,
                                  const std::function<TakeFile()>& begin,
                                  const std::function<bool()>& is_over);

}  // namespace profd::history
