// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "daemon/history/limits.h"
#include "ksym/base/file.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr uint64_t kNsPerSecond = 1'000'000'000;
// Files that are read once more where one vanishes: a journal became a segment,
// or the oldest was removed.
constexpr int kMaxListings = 3;
constexpr size_t kMaxFilesSaid = 5;
constexpr size_t kMaxHeaderBytes = 4096;

// A segment's name tells its time; a journal's does not.
bool MayHave(const FileName& name, const Selection& selection) {
  return !name.is_segment ||
         (name.end_s >= selection.from_unix_ns / kNsPerSecond &&
          name.begin_s <= selection.until_unix_ns / kNsPerSecond);
}

struct FileContent {
  Tables tables;
  size_t bytes_after = 0;
};

Result<FileContent> Decode(const FileName& name, std::string_view bytes) {
  if (name.is_segment) {
    auto segment = DecodeSegment(bytes);
    if (!segment) return Fail(std::move(segment.error()));
    return FileContent{.tables = std::move(segment->tables)};
  }
  auto journal = DecodeJournal(bytes);
  if (!journal) return Fail(std::move(journal.error()));
  return FileContent{.tables = std::move(journal->tables),
                     .bytes_after = journal->bytes_after};
}

std::string UtcTime(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  tm parts = {};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
                     parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

void SayHoles(const RangeCoverage& coverage,
              std::vector<std::string>& warnings) {
  for (const RangeCoverage::Hole& hole : coverage.first_holes) {
    warnings.push_back(
        fmt::format("nothing is known of {} to {} UTC{}",
                    UtcTime(hole.from_unix_ns), UtcTime(hole.until_unix_ns),
                    hole.is_restart ? ": the service was not running" : ""));
  }
  if (coverage.holes > coverage.first_holes.size()) {
    warnings.push_back(
        fmt::format("there are {} such holes, {} seconds all together",
                    coverage.holes, coverage.hole_ns / kNsPerSecond));
  }
  if (coverage.set_back > 0) {
    warnings.push_back(fmt::format(
        "the clock was set back {} times: times overlap", coverage.set_back));
  }
}

// One pass over a folder's files. Starts anew where a file vanished.
class RangeReader {
 public:
  RangeReader(const std::string& folder, const Selection& selection,
              size_t max_bytes)
      : folder_(folder), selection_(selection), range_(selection, max_bytes) {}

  // False: a file is not there any more.
  Result<bool> Read() {
    const auto files = ListFiles(folder_);
    if (!files) return Fail(files.error());
    if (files->empty()) {
      return Fail(ErrorCode::kNotFound, folder_ + ": no history is in it");
    }
    for (const FileName& name : *files) {
      if (!MayHave(name, selection_)) continue;
      const auto bytes = ReadHistoryFile(folder_, name);
      if (!bytes && bytes.error().code() == ErrorCode::kNotFound) return false;
      if (!bytes) {
        NoteBad(name, bytes.error());
      } else if (auto added = Add(name, *bytes); !added) {
        return Fail(std::move(added.error()));
      }
    }
    return true;
  }

  HistoryAnswer Finish() && {
    answer_.coverage = range_.coverage();
    answer_.profile = std::move(range_).Finish();
    std::vector<std::string>& warnings = answer_.profile.metadata.warnings;
    SayHoles(answer_.coverage, warnings);
    warnings.insert(warnings.end(), said_.begin(), said_.end());
    if (answer_.bad_files > said_.size()) {
      warnings.push_back(fmt::format(
          "{} files of the history could not be read", answer_.bad_files));
    }
    return std::move(answer_);
  }

 private:
  Status Add(const FileName& name, std::string_view bytes) {
    ++answer_.files;
    const auto content = Decode(name, bytes);
    if (!content) {
      NoteBad(name, content.error());
      return {};
    }
    answer_.torn_bytes += content->bytes_after;
    auto added = range_.Add(content->tables);
    if (!added && added.error().code() != ErrorCode::kLimit) {
      NoteBad(name, added.error());
      return {};
    }
    return added;
  }

  void NoteBad(const FileName& name, const ksym::Error& error) {
    ++answer_.bad_files;
    if (said_.size() < kMaxFilesSaid) {
      said_.push_back(
          fmt::format("not shown: {}: {}", TextOf(name), error.message()));
    }
  }

  const std::string& folder_;
  const Selection& selection_;
  RangeProfile range_;
  HistoryAnswer answer_;
  std::vector<std::string> said_;
};

}  // namespace

Result<std::vector<FileName>> ListFiles(const std::string& folder) {
  std::vector<FileName> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    const auto name = ParseFileName(at->path().filename().string());
    if (!name) continue;
    if (files.size() == kMaxHistoryFiles) {
      return Fail(ErrorCode::kLimit, folder + ": it has too many files");
    }
    files.push_back(*name);
  }
  if (error) return ksym::FailErrno(error.value(), folder);
  // The segment first where a journal has its number.
  std::ranges::sort(files, [](const FileName& a, const FileName& b) {
    return std::pair(a.sequence, !a.is_segment) <
           std::pair(b.sequence, !b.is_segment);
  });
  const auto repeated = std::ranges::unique(files, {}, &FileName::sequence);
  files.erase(repeated.begin(), repeated.end());
  return files;
}

Result<std::string> ReadHistoryFile(const std::string& folder,
                                    const FileName& name) {
  const std::string path = folder + "/" + TextOf(name);
  const ksym::UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd.valid()) return ksym::FailErrno(errno, path);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return ksym::FailErrno(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kUnsupported, path + ": not a regular file");
  }
  auto bytes = ksym::ReadAll(fd.get(), kMaxStoredBytes + kMaxHeaderBytes);
  if (!bytes) return Fail(std::move(bytes.error()).WithContext(path));
  return bytes;
}

Result<HistoryAnswer> ReadRange(const std::string& folder, Selection selection,
                                size_t max_bytes) {
  for (int i = 0; i < kMaxListings; ++i) {
    RangeReader reader(folder, selection, max_bytes);
    const auto done = reader.Read();
    if (!done) return Fail(done.error());
    if (*done) return std::move(reader).Finish();
  }
  return Fail(ErrorCode::kIo,
              folder + ": its files are removed faster than they are read");
}

}  // namespace profd::history
