// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/history/limits.h"
#include "daemon/history/rare_callees.h"
#include "ksym/base/file.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

// Files are read once more where one vanishes: a journal became a segment,
// segments became one, or the oldest was removed.
constexpr int kMaxPasses = 5;
// A service changes its directory a few times in ten minutes.
constexpr int kMaxListings = 20;
constexpr size_t kMaxFilesSaid = 5;
constexpr size_t kMaxHeaderBytes = 4096;

// A segment's name tells its time; a journal's does not.
bool MayHave(const FileName& name, const Selection& selection) {
  return !name.is_segment ||
         (name.end_s >= selection.from_unix_ns / kNsPerSecond &&
          name.begin_s <= selection.until_unix_ns / kNsPerSecond);
}

// Whether it has no part that is not of the time, as its name tells.
bool IsWithin(const FileName& name, const Selection& selection) {
  return name.is_segment &&
         name.begin_s >= selection.from_unix_ns / kNsPerSecond + 1 &&
         name.end_s <= selection.until_unix_ns / kNsPerSecond;
}

bool IsWithin(const Tables& tables, const Selection& selection) {
  return std::ranges::all_of(tables.parts, [&](const Part& part) {
    return part.start_unix_ns >= selection.from_unix_ns &&
           part.start_unix_ns < selection.until_unix_ns;
  });
}

// One pass over a directory's files.
class DirectoryPass {
 public:
  DirectoryPass(const std::string& directory, const FilesWanted& wanted,
                TakeFile take)
      : directory_(directory), wanted_(wanted), take_(std::move(take)) {}

  // False: a file is not there any more.
  Result<bool> Read(const std::function<bool()>& is_over) {
    const auto files = ListFiles(directory_);
    if (!files) return Fail(files.error());
    if (files->empty()) {
      return Fail(ErrorCode::kNotFound, directory_ + ": no history is in it");
    }
    for (const FileName& name : *files) {
      if (!MayHave(name, wanted_.selection)) continue;
      if (is_over()) {
        return Fail(ErrorCode::kLimit,
                    "it took too long: ask for a shorter time");
      }
      if (wanted_.takes_summaries && IsWithin(name, wanted_.selection)) {
        if (const auto summary = ReadSummary(directory_, name)) {
          ++read_.files;
          if (auto added = Take(*summary); !added) {
            return Fail(std::move(added.error()));
          }
          continue;
        }
      }
      const auto bytes = ReadHistoryFile(directory_, name);
      if (!bytes && bytes.error().code() == ErrorCode::kNotFound) return false;
      if (!bytes) {
        NoteBad(name, bytes.error());
      } else if (auto added = Add(name, *bytes); !added) {
        return Fail(std::move(added.error()));
      }
    }
    return true;
  }

  FilesRead Finish() && {
    if (read_.bad_files > read_.warnings.size()) {
      read_.warnings.push_back(fmt::format(
          "{} files of the history could not be read", read_.bad_files));
    }
    return std::move(read_);
  }

 private:
  Status Add(const FileName& name, std::string_view bytes) {
    ++read_.files;
    const Content content =
        wanted_.takes_flames && IsWithin(name, wanted_.selection)
            ? Content::kFlames
            : wanted_.content;
    auto file = DecodeFile(name, bytes, content, std::move(room_));
    // A name may be that of another time.
    if (file && file->flames && !IsWithin(file->tables, wanted_.selection)) {
      file = DecodeFile(name, bytes, wanted_.content, std::move(file->tables));
    }
    if (!file) {
      NoteBad(name, file.error());
      return {};
    }
    auto taken = Take(*file);
    room_ = std::move(file->tables);
    return taken;
  }

  Status Take(const FileContent& file) {
    read_.torn_bytes += file.torn_bytes;
    auto added = take_(file);
    if (!added && added.error().code() != ErrorCode::kLimit) {
      NoteBad(file.name, added.error());
      return {};
    }
    for (const Thinning& thinning : file.tables.thinnings) {
      ++read_.thinned_files;
      read_.folded_stacks += thinning.stacks;
    }
    return added;
  }

  void NoteBad(const FileName& name, const ksym::Error& error) {
    ++read_.bad_files;
    if (read_.warnings.size() < kMaxFilesSaid) {
      read_.warnings.push_back(
          fmt::format("not shown: {}: {}", TextOf(name), error.message()));
    }
  }

  const std::string& directory_;
  const FilesWanted wanted_;
  const TakeFile take_;
  Tables room_;
  FilesRead read_;
};

// One listing of the directory.
Result<DirectoryListing> ListOnce(const std::string& directory) {
  std::vector<FileName> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end;
       !error && at != end; at.increment(error)) {
    const auto name = ParseFileName(at->path().filename().string());
    if (!name) continue;
    if (files.size() == kMaxHistoryFiles) {
      return Fail(ErrorCode::kLimit, directory + ": it has too many files");
    }
    files.push_back(*name);
  }
  // A part of a listing would look like files that were removed.
  if (error) return ksym::FailErrno(error.value(), directory);
  // What covers others comes before them, so one pass finds all that are
  // covered: the numbers of each before it begin nowhere behind its own.
  std::ranges::sort(files, [](const FileName& a, const FileName& b) {
    return std::tuple(a.sequences.first, b.sequences.last, b.is_segment,
                      a.begin_s,
                      a.end_s) < std::tuple(b.sequences.first, a.sequences.last,
                                            a.is_segment, b.begin_s, b.end_s);
  });
  DirectoryListing listing;
  std::optional<uint64_t> covered_to;
  for (const FileName& name : files) {
    const bool is_covered = covered_to && name.sequences.last <= *covered_to;
    (is_covered ? listing.covered : listing.files).push_back(name);
    if (name.is_segment && !is_covered) covered_to = name.sequences.last;
  }
  return listing;
}

Result<ksym::UniqueFd> OpenHistoryFile(const std::string& path) {
  ksym::UniqueFd fd(
      // A directory may be anyone's: a FIFO in it would block, and a link could
      // lead anywhere.
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd.valid()) return ksym::FailErrno(errno, path);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return ksym::FailErrno(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kUnsupported, path + ": not a regular file");
  }
  return fd;
}

}  // namespace

Result<DirectoryListing> ListDirectory(const std::string& directory) {
  auto last = ListOnce(directory);
  for (int i = 1; last && i < kMaxListings; ++i) {
    auto again = ListOnce(directory);
    if (!again) return again;
    if (*again == *last) return again;
    last = std::move(again);
  }
  if (!last) return last;
  return Fail(ErrorCode::kIo,
              directory + ": its files change too fast to list");
}

Result<std::vector<FileName>> ListFiles(const std::string& directory) {
  auto listing = ListDirectory(directory);
  if (!listing) return Fail(std::move(listing.error()));
  return std::move(listing->files);
}

uint64_t SizeOfFile(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0
             ? static_cast<uint64_t>(status.st_size)
             : 0;
}

Result<std::string> ReadHistoryFile(const std::string& directory,
                                    const FileName& name) {
  const std::string path = directory + "/" + TextOf(name);
  const auto fd = OpenHistoryFile(path);
  if (!fd) return Fail(fd.error());
  auto bytes = ksym::ReadAll(fd->get(), kMaxStoredBytes + kMaxHeaderBytes);
  if (!bytes) return Fail(std::move(bytes.error()).WithContext(path));
  return bytes;
}

Result<std::string> ReadBeginning(const std::string& directory,
                                  const FileName& name, size_t size) {
  const std::string path = directory + "/" + TextOf(name);
  const auto fd = OpenHistoryFile(path);
  if (!fd) return Fail(fd.error());
  std::string bytes(size, '\0');
  auto read = ksym::ReadExactlyAt(fd->get(), 0,
                                  std::as_writable_bytes(std::span(bytes)));
  if (!read) return Fail(std::move(read.error()).WithContext(path));
  return bytes;
}

std::optional<FileContent> ReadSummary(const std::string& directory,
                                       const FileName& name) {
  const auto fd = OpenHistoryFile(directory + "/" + TextOf(name));
  if (!fd) return std::nullopt;
  const auto read = [&](size_t offset, size_t size) {
    std::string bytes(size, '\0');
    const auto done = ksym::ReadExactlyAt(
        fd->get(), offset, std::as_writable_bytes(std::span(bytes)));
    return done ? bytes : std::string();
  };
  const auto outline = ReadSegmentOutline(read(0, kSegmentHeaderBytes));
  if (!outline || outline->sequences != name.sequences) return std::nullopt;
  const std::optional<SegmentOutline::Summary>& summary = outline->summary;
  if (!summary) return std::nullopt;
  auto tables =
      DecodeSummary(*summary, read(summary->offset, summary->packed_size));
  if (!tables) return std::nullopt;
  return FileContent{.name = name,
                     .bytes = summary->packed_size,
                     .tables = std::move(*tables)};
}

Result<FileContent> DecodeFile(const FileName& name, std::string_view bytes,
                               Content content, Tables room) {
  FileContent file = {.name = name, .bytes = bytes.size(), .tables = {}};
  if (name.is_segment) {
    auto segment = DecodeSegment(bytes, content, std::move(room));
    if (!segment) return Fail(std::move(segment.error()));
    if (segment->sequences != name.sequences) {
      return Fail(ErrorCode::kCorrupt, "its name is that of another file");
    }
    file.tables = std::move(segment->tables);
    file.flames = std::move(segment->flames);
    return file;
  }
  auto journal = DecodeJournal(bytes);
  if (!journal) return Fail(std::move(journal.error()));
  file.tables = std::move(journal->tables);
  file.torn_bytes = journal->bytes_after;
  return file;
}

std::string TextOfThinning(const FilesRead& read) {
  if (read.thinned_files == 0) return {};
  return fmt::format(
      "for their age {} files are thinned out: {} stacks that were seen once "
      "in one are \"{}\" of their callers; no sample is missing",
      read.thinned_files, read.folded_stacks, kRareCallees);
}

Result<FilesRead> ReadFiles(const std::string& directory,
                            const FilesWanted& wanted,
                            const std::function<TakeFile()>& begin,
                            const std::function<bool()>& is_over) {
  for (int i = 0; i < kMaxPasses; ++i) {
    DirectoryPass pass(directory, wanted, begin());
    const auto done = pass.Read(is_over);
    if (!done) return Fail(done.error());
    if (*done) return std::move(pass).Finish();
  }
  return Fail(ErrorCode::kIo,
              directory + ": its files are removed faster than they are read");
}

}  // namespace profd::history
