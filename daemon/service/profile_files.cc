// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/profile_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "daemon/base/now_ns.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr size_t kTimeNameBytes = 20;
// More profiles with one time than a clock that is set back can make.
constexpr int kMaxSameTime = 1000;
constexpr auto kExtensions =
    std::to_array<std::string_view>({"folded", "json", "pb.gz", "push"});

bool AllDigits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// What follows the time: "" or "-N", and an extension.
bool IsProfileTail(std::string_view tail) {
  const std::string_view number = ksym::TakeField(tail, '.');
  const bool numbered =
      number.size() > 1 && number.front() == '-' && AllDigits(number.substr(1));
  return (number.empty() || numbered) &&
         std::ranges::find(kExtensions, tail) != kExtensions.end();
}

bool IsProfileName(std::string_view name) {
  return ParseProfileTimeName(name) &&
         IsProfileTail(name.substr(kTimeNameBytes));
}

// What AtomicFile writes to: the name and six characters.
bool IsTemporaryName(std::string_view name) {
  constexpr size_t kSuffixBytes = 7;
  return name.size() > kSuffixBytes &&
         name[name.size() - kSuffixBytes] == '.' &&
         IsProfileName(name.substr(0, name.size() - kSuffixBytes));
}

// The directories in `path` whose names are numbers of that length.
std::vector<std::string> NumberedDirectories(const fs::path& path,
                                             size_t digits) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.size() == digits && AllDigits(name) &&
        // A link is not followed: it could lead anywhere, and files are
        // deleted.
        it->symlink_status(ignored).type() == fs::file_type::directory) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::string DayOf(std::string_view time_name) {
  return fmt::format("{}/{}/{}", time_name.substr(0, 4), time_name.substr(4, 2),
                     time_name.substr(6, 2));
}

}  // namespace

std::string ProfileTimeName(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  tm utc = {};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z",
                     utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec,
                     unix_ns % kNsPerSecond / kNsPerMs);
}

std::optional<uint64_t> ParseProfileTimeName(std::string_view name) {
  if (name.size() < kTimeNameBytes || name[8] != 'T' || name[15] != '.' ||
      name[19] != 'Z') {
    return std::nullopt;
  }
  const auto number = [name](size_t at, size_t digits) {
    return ksym::ParseUnsigned<uint32_t>(name.substr(at, digits), 10);
  };
  const auto year = number(0, 4), month = number(4, 2), day = number(6, 2);
  const auto hour = number(9, 2), minute = number(11, 2);
  const auto second = number(13, 2), millisecond = number(16, 3);
  if (!year || !month || !day || !hour || !minute || !second || !millisecond) {
    return std::nullopt;
  }
  tm utc = {};
  utc.tm_year = static_cast<int>(*year) - 1900;
  utc.tm_mon = static_cast<int>(*month) - 1;
  utc.tm_mday = static_cast<int>(*day);
  utc.tm_hour = static_cast<int>(*hour);
  utc.tm_min = static_cast<int>(*minute);
  utc.tm_sec = static_cast<int>(*second);
  const time_t seconds = ::timegm(&utc);
  if (seconds < 0) return std::nullopt;
  const uint64_t unix_ns =
      static_cast<uint64_t>(seconds) * kNsPerSecond + *millisecond * kNsPerMs;
  // timegm takes a 31st of June; such a name is none of ours.
  if (ProfileTimeName(unix_ns) != name.substr(0, kTimeNameBytes)) {
    return std::nullopt;
  }
  return unix_ns;
}

ksym::Result<ProfileFiles> ProfileFiles::Open(std::string directory,
                                              Limits limits) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return ksym::FailErrno(error.value(), directory);
  ProfileFiles files(std::move(directory), limits);
  files.ReadDays();
  files.Enforce(NowNs(CLOCK_REALTIME));
  return files;
}

void ProfileFiles::ReadDays() {
  for (const std::string& year : NumberedDirectories(directory_, 4)) {
    const fs::path of_year = fs::path(directory_) / year;
    for (const std::string& month : NumberedDirectories(of_year, 2)) {
      for (const std::string& day : NumberedDirectories(of_year / month, 2)) {
        const std::string name = fmt::format("{}/{}/{}", year, month, day);
        Day sum;
        for (const File& file : ReadDay(name)) {
          sum.bytes += file.bytes;
          ++sum.files;
        }
        total_bytes_ += sum.bytes;
        total_files_ += sum.files;
        days_.emplace(name, sum);
      }
    }
  }
}

std::deque<ProfileFiles::File> ProfileFiles::ReadDay(
    const std::string& day) const {
  std::deque<File> files;
  std::error_code error;
  for (fs::directory_iterator it(fs::path(directory_) / day, error), end;
       !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    std::error_code failed;
    if (it->symlink_status(failed).type() != fs::file_type::regular) continue;
    if (IsTemporaryName(name)) {
      ksym::AtomicFile::RemoveAbandoned(it->path().string());
    } else if (IsProfileName(name)) {
      const uintmax_t bytes = it->file_size(failed);
      files.push_back({std::move(name), failed ? 0 : bytes});
    }
  }
  // Names begin with the time, so this is their order by age.
  std::ranges::sort(files, {}, &File::name);
  return files;
}

ksym::Result<std::string> ProfileFiles::Write(uint64_t start_unix_ns,
                                              std::string_view extension,
                                              std::string_view bytes) {
  const std::string time_name = ProfileTimeName(start_unix_ns);
  const std::string day = DayOf(time_name);
  const fs::path directory = fs::path(directory_) / day;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return ksym::FailErrno(error.value(), directory.string());
  std::string name = fmt::format("{}.{}", time_name, extension);
  for (int i = 1; i < kMaxSameTime && fs::exists(directory / name, error);
       ++i) {
    name = fmt::format("{}-{}.{}", time_name, i, extension);
  }
  std::string path = (directory / name).string();
  auto file = ksym::AtomicFile::Create(path);
  if (!file) return ksym::Fail(std::move(file.error()));
  auto written = file->Write(bytes);
  if (written) written = file->Commit(ksym::AtomicFile::Durability::kDurable);
  if (!written) return ksym::Fail(std::move(written.error()));

  Day& sum = days_[day];
  sum.bytes += bytes.size();
  ++sum.files;
  total_bytes_ += bytes.size();
  ++total_files_;
  if (day == oldest_day_) oldest_.push_back({name, bytes.size()});
  Enforce(std::max(start_unix_ns, NowNs(CLOCK_REALTIME)), day + "/" + name);
  return path;
}

ProfileFiles::File* ProfileFiles::Oldest() {
  while (!days_.empty()) {
    const std::string& day = days_.begin()->first;
    if (oldest_day_ != day) {
      oldest_ = ReadDay(day);
      oldest_day_ = day;
    }
    if (!oldest_.empty()) return &oldest_.front();
    // Others may have deleted files; what they had does not count any more.
    total_bytes_ -= days_.begin()->second.bytes;
    total_files_ -= days_.begin()->second.files;
    fs::path directory = fs::path(directory_) / day;
    std::error_code error;
    // The day, and the month and year if they are empty as well.
    for (int i = 0; i < 3 && fs::remove(directory, error) && !error; ++i) {
      directory = directory.parent_path();
    }
    oldest_day_.clear();
    days_.erase(days_.begin());
  }
  return nullptr;
}

void ProfileFiles::DeleteOldest() {
  const auto day = days_.begin();
  const File file = std::move(oldest_.front());
  oldest_.pop_front();
  std::error_code error;
  // One that cannot be deleted counts no more all the same: it would be the
  // oldest for ever, and Enforce() would not end.
  fs::remove(fs::path(directory_) / day->first / file.name, error);
  day->second.bytes -= std::min(day->second.bytes, file.bytes);
  day->second.files -= std::min<uint64_t>(day->second.files, 1);
  total_bytes_ -= std::min(total_bytes_, file.bytes);
  total_files_ -= std::min<uint64_t>(total_files_, 1);
}

std::optional<std::string> ProfileFiles::OldestPath() {
  const File* file = Oldest();
  if (file == nullptr) return std::nullopt;
  return (fs::path(directory_) / days_.begin()->first / file->name).string();
}

void ProfileFiles::Remove(const std::string& oldest_path) {
  if (OldestPath() == oldest_path) DeleteOldest();
}

void ProfileFiles::Enforce(uint64_t now_unix_ns, std::string_view keep) {
  const uint64_t max_age_ns =
      static_cast<uint64_t>(limits_.max_age.count()) * kNsPerSecond;
  while (const File* file = Oldest()) {
    // All behind it are younger.
    if (days_.begin()->first + "/" + file->name == keep) return;
    const uint64_t began = ParseProfileTimeName(file->name).value_or(0);
    const bool too_old =
        now_unix_ns > max_age_ns && began < now_unix_ns - max_age_ns;
    if (!too_old && total_bytes_ <= limits_.max_bytes) return;
    DeleteOldest();
    ++deleted_files_;
  }
}

}  // namespace profd
