// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "ksym/base/bounded_name.h"
#include "ksym/base/byte_reader.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/base/trust.h"
#include "ksym/process/mapped_file.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr int64_t kNsPerSecond = 1'000'000'000;

std::string_view StripHexPrefix(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return text;
}

// What of /proc/PID/status decides about a perf map.
struct TaskStatus {
  ProcessUsers users;
  uint32_t innermost_pid = 0;
};

std::string_view LastField(std::string_view line) {
  const size_t at = line.find_last_of(" \t");
  return at == std::string_view::npos ? line : line.substr(at + 1);
}

Result<TaskStatus> ReadTaskStatus(uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  const auto text = ReadFile(path, size_t{64} << 10);
  if (!text) return Fail(text.error());
  TaskStatus status;
  status.innermost_pid = pid;
  bool has_users = false;
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view line = TakeField(rest, '\n');
    const std::string_view key = TakeField(line, ':');
    if (key == "Uid") {
      line = TrimLeft(line, '\t');
      TakeField(line, '\t');  // real
      const auto uid = ParseUnsigned<uid_t>(TakeField(line, '\t'), 10);
      const auto saved = ParseUnsigned<uid_t>(TakeField(line, '\t'), 10);
      has_users = uid && saved;
      if (has_users) status.users = {.effective = *uid, .saved = *saved};
    } else if (key == "NSpid") {
      status.innermost_pid =
          ParseUnsigned<uint32_t>(LastField(line), 10).value_or(pid);
    }
  }
  if (!has_users) return Fail(ErrorCode::kUnsupported, path + ": no Uid line");
  return status;
}

int64_t ClockNs(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

// A map that was last written before the process began is another process's
// that had the pid. A second's grace for clocks that were set.
bool IsStale(const OpenedFile& file, const ProcessId& process) {
  if (process.start_ns == 0) return false;
  const int64_t boot = ClockNs(CLOCK_REALTIME) - ClockNs(CLOCK_BOOTTIME);
  const int64_t started = boot + static_cast<int64_t>(process.start_ns);
  const int64_t written = file.mtime_ns / kNsPerSecond * kNsPerSecond;
  return written + 2 * kNsPerSecond < started;
}

std::string PathOf(uint32_t pid) {
  return "/tmp/perf-" + std::to_string(pid) + ".map";
}

// Why the map may not name the process's code; empty: it may.
std::string WhyNotTrusted(const FileOwner& owner, const ProcessUsers& users) {
  if (MayNameMemory(owner, users)) return {};
  if (owner.user == 0 || owner.user == users.effective) {
    return (owner.mode & S_IWOTH) != 0
               ? "everybody may write to it"
               : "the process can become user " + std::to_string(users.saved);
  }
  return "owned by another user (" + std::to_string(owner.user) +
         "), not the process's (" + std::to_string(users.effective) +
         ") or root";
}

Status CheckTrust(const OpenedFile& file, const std::string& path,
                  const TaskStatus& status, const ProcessId& process) {
  const std::string why = WhyNotTrusted(file.owner, status.users);
  if (!why.empty()) return Fail(ErrorCode::kInvalid, path + ": " + why);
  if (IsStale(file, process)) {
    return Fail(ErrorCode::kInvalid, path + ": older than the process");
  }
  return {};
}

struct Place {
  uint32_t root_of = 0;
  const std::string& path;
};

Result<OpenedFile> OpenMap(FileOpener& opener, const Place& place,
                           const TaskStatus& status, const ProcessId& process) {
  const std::string& path = place.path;
  auto file = opener.OpenPath(place.root_of, path, Links::kRefuse);
  if (!file && file.error().sys_errno() == ELOOP) {
    return Fail(ErrorCode::kInvalid, path + ": behind a symbolic link");
  }
  if (!file) return file;
  auto trusted = CheckTrust(*file, path, status, process);
  if (!trusted) return Fail(std::move(trusted.error()));
  return file;
}

}  // namespace

bool PerfMap::AddLine(std::string_view line) {
  const auto start = ParseUnsigned(StripHexPrefix(TakeField(line, ' ')), 16);
  const auto size = ParseUnsigned(StripHexPrefix(TakeField(line, ' ')), 16);
  if (!start || !size || *size == 0 || line.empty()) return false;
  const auto end = CheckedAdd(*start, *size);
  if (!end) return false;
  std::string room;
  const std::string_view name = BoundName(line, room);
  if (entries_.size() == kMaxEntries ||
      name.size() > kMaxNameBytes - names_.size()) {
    full_ = true;
    return true;
  }
  entries_.push_back({*start, *end, static_cast<uint32_t>(names_.size()),
                      static_cast<uint32_t>(name.size())});
  names_ += name;
  cut_ = false;
  return true;
}

void PerfMap::Append(std::string_view text) {
  while (!text.empty() && !full_) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    if (newline == std::string_view::npos) {
      // A line without end keeps only its beginning; it will not parse.
      if (torn_line_.size() < kMaxLineBytes) torn_line_ += line;
      return;
    }
    text.remove_prefix(newline + 1);
    if (!torn_line_.empty()) torn_line_ += line;
    const bool torn = !torn_line_.empty();
    const std::string_view whole = torn ? std::string_view(torn_line_) : line;
    if (whole.size() > kMaxLineBytes || !AddLine(whole)) ++malformed_lines_;
    if (torn) torn_line_.clear();
  }
}

// Sweeps over the entries by address with a heap of those that are open; the
// newest owns the position.
void PerfMap::Cut() {
  cut_ = true;
  pieces_.clear();
  std::vector<uint32_t> order(entries_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return entries_[a].start < entries_[b].start;
  });
  std::priority_queue<uint32_t> open;
  uint64_t position = 0;
  size_t next = 0;
  while (next < order.size() || !open.empty()) {
    if (open.empty()) position = entries_[order[next]].start;
    while (next < order.size() && entries_[order[next]].start <= position) {
      open.push(order[next++]);
    }
    const uint32_t newest = open.top();
    if (entries_[newest].end <= position) {
      open.pop();
      continue;
    }
    uint64_t stop = entries_[newest].end;
    if (next < order.size()) {
      stop = std::min(stop, entries_[order[next]].start);
    }
    if (!pieces_.empty() && pieces_.back().entry == newest &&
        pieces_.back().end == position) {
      pieces_.back().end = stop;
    } else {
      pieces_.push_back({position, stop, newest});
    }
    position = stop;
  }
}

std::optional<PerfMap::Match> PerfMap::Find(Address address) {
  if (!cut_) Cut();
  const auto next = std::upper_bound(
      pieces_.begin(), pieces_.end(), address.value,
      [](uint64_t value, const Piece& p) { return value < p.start; });
  if (next == pieces_.begin() || address.value >= (next - 1)->end) {
    return std::nullopt;
  }
  const Entry& entry = entries_[(next - 1)->entry];
  return Match{std::string_view(names_).substr(entry.name, entry.name_size),
               Address{entry.start}};
}

size_t PerfMap::memory_bytes() const {
  return names_.capacity() + entries_.capacity() * sizeof(Entry) +
         pieces_.capacity() * sizeof(Piece);
}

Result<PerfMapFile> PerfMapFile::Open(const ProcessId& process,
                                      std::shared_ptr<FileOpener> opener) {
  const auto status = ReadTaskStatus(process.pid);
  if (!status) return Fail(status.error());
  PerfMapFile map;
  map.process_ = process;
  map.opener_ = std::move(opener);
  map.root_of_ = process.pid;
  map.path_ = PathOf(status->innermost_pid);
  auto file =
      OpenMap(*map.opener_, {map.root_of_, map.path_}, *status, process);
  if (!file && file.error().code() == ErrorCode::kNotFound) {
    map.root_of_ = 0;
    map.path_ = PathOf(process.pid);
    file = OpenMap(*map.opener_, {map.root_of_, map.path_}, *status, process);
  }
  if (!file) return Fail(file.error());
  map.file_ = std::move(*file);
  map.opened_ = std::chrono::steady_clock::now();
  return map;
}

Result<uint64_t> PerfMapFile::SizeNow() {
  if (!file_.remote) {
    struct stat file = {};
    if (::fstat(file_.fd.get(), &file) != 0) {
      return FailErrno(errno, "perf map");
    }
    return static_cast<uint64_t>(file.st_size);
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - opened_ >= kCopyPeriod) {
    opened_ = now;
    const auto status = ReadTaskStatus(process_.pid);
    if (!status) return file_.size;
    auto file = OpenMap(*opener_, {root_of_, path_}, *status, process_);
    if (file) file_ = std::move(*file);
  }
  return file_.size;
}

Status PerfMapFile::Refresh() {
  const auto size_now = SizeNow();
  if (!size_now) return Fail(size_now.error());
  const uint64_t size = *size_now;
  if (size > kMaxFileBytes) {
    return Fail(ErrorCode::kLimit, path_ + ": larger than " +
                                       std::to_string(kMaxFileBytes >> 20) +
                                       " MiB");
  }
  // A file that shrank was written anew: what was read of it is another's.
  if (size < read_bytes_) {
    map_ = PerfMap();
    read_bytes_ = 0;
  }
  // Not on the stack, which may be a small thread's.
  std::vector<char> block(
      static_cast<size_t>(std::min<uint64_t>(size - read_bytes_, kBlockBytes)));
  while (read_bytes_ < size && !map_.full()) {
    const auto want = static_cast<size_t>(
        std::min<uint64_t>(size - read_bytes_, block.size()));
    const auto part = std::span(block).first(want);
    const auto read = ReadExactlyAt(file_.fd.get(), read_bytes_,
                                    std::as_writable_bytes(part));
    if (!read) return read;
    map_.Append({part.data(), part.size()});
    read_bytes_ += want;
  }
  return {};
}

}  // namespace ksym
