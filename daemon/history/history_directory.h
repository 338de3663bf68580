// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/layout.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// The files in the directory of a history, by sequence number. A file is
// covered if a segment has all of its numbers: the segment has the same
// samples, and the file's writer was about to remove it.
struct DirectoryListing {
  std::vector<FileName> files;
  std::vector<FileName> covered;

  friend bool operator==(const DirectoryListing&,
                         const DirectoryListing&) = default;
};
// Lists it until two listings are the same: one alone may miss a file that was
// removed meanwhile and the one that came in its place. kNotFound: there is no
// such directory. kLimit: there are too many files. kIo: they change too fast.
ksym::Result<DirectoryListing> ListDirectory(const std::string& directory);
// Those that are not covered.
ksym::Result<std::vector<FileName>> ListFiles(const std::string& directory);

// 0: it is not there.
uint64_t SizeOfFile(const std::string& path);
// The bytes of one of them: of a regular file, not through a link.
ksym::Result<std::string> ReadHistoryFile(const std::string& directory,
                                          const FileName& name);
// The first so many of them; kCorrupt where there are fewer.
ksym::Result<std::string> ReadBeginning(const std::string& directory,
                                        const FileName& name, size_t size);

// How the files of a directory were read.
struct FilesRead {
  uint64_t files = 0;       // that were read
  uint64_t bad_files = 0;   // that were not used
  uint64_t torn_bytes = 0;  // of journals behind their last good record
  uint64_t thinned_files = 0;
  uint64_t folded_stacks = 0;  // in these
  // The files that were not used, in words; the first ones of many.
  std::vector<std::string> warnings;
};

// What files that were thinned out lack, in words; empty: there are none.
std::string TextOfThinning(const FilesRead& read);

// A file that was read.
struct FileContent {
  FileName name;
  uint64_t bytes = 0;
  Tables tables;
  size_t torn_bytes = 0;  // of a journal, behind its last good record
  std::optional<StoredFlames> flames = std::nullopt;  // as DecodeSegment() says
};

// kCorrupt also where a name has other sequence numbers than the header. All of
// a journal, whatever the content; `room` as DecodeSegment() says.
ksym::Result<FileContent> DecodeFile(const FileName& name,
                                     std::string_view bytes,
                                     Content content = Content::kAll,
                                     Tables room = {});

// The summary of a segment alone; nothing: it has none. Where it cannot be read
// the whole file tells why.
std::optional<FileContent> ReadSummary(const std::string& directory,
                                       const FileName& name);

// Takes a file, the oldest first. kLimit ends the reading; after another
// failure the file counts as one that was not used.
using TakeFile = std::function<ksym::Status(const FileContent& file)>;

// The times of a selection choose among the files.
struct FilesWanted {
  const Selection& selection;
  Content content = Content::kAll;  // of segments, or more
  // A segment's summary is read in its place if all of it is in the times.
  bool takes_summaries = false;
  // Its flames are read in place of stacks and rows, if all of it is.
  bool takes_flames = false;
};

// Reads the files of a history that may have parts of a time, also while it is
// written or on another machine: each whole, one at a time. `begin` gives what
// takes them. It is called anew where a file vanished meanwhile, as a journal
// became a segment, or segments became one: what was taken before does not
// count. Asks `is_over` before
// each file; where that says so, and where `take` does, the error is kLimit.
// Fails where the directory cannot be read or holds no history.
ksym::Result<FilesRead> ReadFiles(const std::string& directory,
                                  const FilesWanted& wanted,
                                  const std::function<TakeFile()>& begin,
                                  const std::function<bool()>& is_over);

}  // namespace profd::history
