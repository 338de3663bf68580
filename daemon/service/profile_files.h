// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/result.h"

namespace profd {

// The directory of profiles:
// DIRECTORY/YYYY/MM/DD/YYYYMMDDTHHMMSS.mmmZ.EXTENSION, by the beginning of the
// profile, in UTC. Each file appears whole, its data on the disk first. Only
// files and directories of such names are counted or deleted. Remembers sizes
// per day, not files: months of profiles are 100,000s. Not thread-safe.
class ProfileFiles {
 public:
  struct Limits {
    uint64_t max_bytes = 0;
    std::chrono::seconds max_age{};
  };
  // Reads what is there: one stat(2) per file. Temporary files of a run that
  // was killed are deleted.
  static ksym::Result<ProfileFiles> Open(std::string directory, Limits limits);

  // Writes a profile that began then. On failure nothing is left, and the next
  // call may succeed. A name that is taken gets "-1", "-2" ... Then deletes
  // what is too old, and the oldest ones until all fit; the new one stays.
  ksym::Result<std::string> Write(uint64_t start_unix_ns,
                                  std::string_view extension,
                                  std::string_view bytes);
  // From the next Write() or Enforce() on.
  void SetLimits(Limits limits) { limits_ = limits; }
  // Deletes what is too old at that time, and the oldest while the sum is too
  // large, but none of `keep`.
  void Enforce(uint64_t now_unix_ns, std::string_view keep = {});

  // The path of the oldest one; nothing if there is none.
  std::optional<std::string> OldestPath();
  // Removes that one, if it is still the oldest.
  void Remove(const std::string& oldest_path);

  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t total_files() const { return total_files_; }
  // By Enforce(), since it was opened.
  uint64_t deleted_files() const { return deleted_files_; }

 private:
  struct Day {
    uint64_t bytes = 0;
    uint64_t files = 0;
  };
  struct File {
    std::string name;
    uint64_t bytes = 0;
  };
  ProfileFiles(std::string directory, Limits limits)
      : directory_(std::move(directory)), limits_(limits) {}

  void ReadDays();
  std::deque<File> ReadDay(const std::string& day) const;
  void DeleteOldest();
  File* Oldest();

  std::string directory_;
  Limits limits_;
  std::map<std::string, Day> days_;  // by "YYYY/MM/DD"
  // The files of the first day, oldest first, once they were needed.
  std::string oldest_day_;
  std::deque<File> oldest_;
  uint64_t total_bytes_ = 0;
  uint64_t total_files_ = 0;
  uint64_t deleted_files_ = 0;
};

// "20261121T210305.123Z", and back.
std::string ProfileTimeName(uint64_t unix_ns);
std::optional<uint64_t> ParseProfileTimeName(std::string_view name);

}  // namespace profd
