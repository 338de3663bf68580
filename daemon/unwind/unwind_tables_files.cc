// SPDX-License-Identifier: Apache-2.0
// The part of UnwindTables that knows files: which one a mapping is of, through
// whom it can be opened, and what becomes of those that cannot.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/unwind/unwind_tables.h"
#include "ksym/elf/elf_image.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/vdso.h"

namespace profd {
namespace {

// So often a file that cannot be opened is tried before its code counts as code
// without a table, and through so many processes each time.
constexpr uint32_t kMostFailures = 16;
constexpr size_t kMostHolders = 16;
// Anybody can map any number; some 600 bytes each. Code in others has no table.
constexpr size_t kMostFiles = size_t{1} << 15;
// How much longer than others that were refused it waits then.
constexpr std::chrono::seconds kFirstPatience(2);
constexpr std::chrono::seconds kMostPatience(120);
// A stack waits for so long for a file that somebody else opens.
constexpr std::chrono::milliseconds kOpeningPatience(100);

// The bytes of what was opened, and what it is; if it is what is mapped.
ksym::Result<ksym::ByteSource> SourceOf(ksym::OpenedFile opened, uint64_t& size,
                                        int64_t& mtime_ns) {
  auto source = ksym::ByteSource::OfFile(
      std::move(opened.fd), opened.size,
      {.owner = OwnerOfCopy(opened), .room = std::move(opened.room)});
  const std::string& mapped = opened.mapped_build_id;
  if (!mapped.empty()) {
    const auto image = ksym::ElfImage::Parse(source);
    if (!image) return ksym::Fail(image.error());
    if (image->build_id() != mapped) {
      return ksym::Fail(ksym::ErrorCode::kInvalid, "another build-id");
    }
  }
  size = opened.size;
  mtime_ns = opened.mtime_ns;
  return source;
}

// The mount namespace of the process; 0: it is gone, or not ours to see.
uint64_t MountsOf(uint32_t pid) {
  struct stat status = {};
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/mnt";
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

ksym::Result<ksym::ByteSource> FailApart() {
  return ksym::Fail(ksym::ErrorCode::kPermission, "of one mount namespace");
}

}  // namespace

UnwindTables::Key UnwindTables::KeyOf(const ksym::Mapping& mapping) {
  if (mapping.inode == 0) return {};
  return {.device_major = mapping.device_major,
          .device_minor = mapping.device_minor,
          .inode = mapping.inode,
          .path = mapping.device_major == 0 ? mapping.path : ksym::SharedPath(),
          .mounts = 0};
}

// That of the process's mount namespace; null if it has none. What was opened
// is not used again when nobody has it: the number may be another namespace's
// by then.
UnwindTables::File* UnwindTables::FindApart(uint32_t pid, Key key) {
  key.mounts = MountsOf(pid);
  const auto at = key.mounts == 0 ? files_.end() : files_.find(key);
  if (at == files_.end()) return nullptr;
  File& file = *at->second;
  const bool is_fresh = !file.rows && file.job == 0 && file.is_pending();
  if (file.users > 0 || is_fresh) return &file;
  if (file.job == 0) {
    Discard(file);
    files_.erase(at);
  }
  return nullptr;
}

// A path leads where the maker of the process's mounts has it lead, which may
// be to a file that has the numbers of somebody else's. That one is for those
// who are led to it; a file is for everybody who maps these numbers if they
// leave no choice, or if no user could have made it.
bool UnwindTables::MaySpeak(File& file, uint32_t pid,
                            const ksym::OpenedFile& opened) {
  if (file.is_apart) return true;
  if (opened.is_only_one || ksym::IsOfMachine(opened.owner, ::geteuid())) {
    file.is_for_all = true;
    return true;
  }
  Key key = KeyOf(file.mapping);
  key.mounts = MountsOf(pid);
  if (key.mounts == 0 || files_.size() >= kMostFiles) return false;
  auto& apart = files_[key];
  if (!apart) {
    apart = std::make_unique<File>();
    apart->is_apart = true;
    apart->is_wanted = true;
    apart->used = Clock::now();
  }
  has_apart_ = true;
  parted_.insert(&file);
  return false;
}

void UnwindTables::TakeApart() {
  const auto parted = std::exchange(parted_, {});
  if (parted.empty()) return;
  for (auto& [id, process] : processes_) {
    const bool has_any = std::ranges::any_of(
        process.files, [&](const File* file) { return parted.contains(file); });
    if (has_any) Acquire(id, process);
  }
}

// Null for memory that is no file's.
UnwindTables::File* UnwindTables::FileOf(uint32_t pid,
                                         const ksym::Mapping& mapping) {
  const bool is_vdso = mapping.path == "[vdso]";
  if (mapping.inode == 0 && !is_vdso) return nullptr;
  const Key key = KeyOf(mapping);
  if (has_apart_ && !is_vdso) {
    const auto of_all = files_.find(key);
    if (of_all == files_.end() || !of_all->second->is_for_all) {
      File* apart = FindApart(pid, key);
      if (apart != nullptr) return HandOut(*apart, pid, mapping);
    }
  }
  if (files_.size() >= kMostFiles && !files_.contains(key)) return nullptr;
  auto& file = files_[key];
  if (file && file->users == 0 && file->job == 0 && file->is_wanted &&
      !is_vdso && file->checked != round_) {
    file->checked = round_;
    // An inode that nobody mapped for a while may be another file's by now.
    if (!IsUnchanged(pid, mapping, *file)) {
      Discard(*file);
      file.reset();
    }
  }
  if (!file) {
    file = std::make_unique<File>();
    file->is_vdso = is_vdso;
    file->checked = round_;
  }
  return HandOut(*file, pid, mapping);
}

// The process is here, those that mapped it before may be gone.
UnwindTables::File* UnwindTables::HandOut(File& file, uint32_t pid,
                                          const ksym::Mapping& mapping) {
  if (file.users == 0) {
    file.pid = pid;
    file.mapping = mapping;
  }
  return &file;
}

ksym::Result<ksym::OpenedFile> UnwindTables::Hold(
    uint32_t pid, const ksym::Mapping& mapping) const {
  return opener_ ? opener_->HoldLocal(pid, mapping)
                 : ksym::HoldMappedOrHostFile(pid, mapping);
}

// One that is not local may be another by now.
bool UnwindTables::IsUnchanged(uint32_t pid, const ksym::Mapping& mapping,
                               const File& file) const {
  const auto held = Hold(pid, mapping);
  return held && held->size == file.size && held->mtime_ns == file.mtime_ns;
}

ksym::Result<ksym::ByteSource> UnwindTables::OpenOnce(File& file) {
  auto opened = Hold(file.pid, file.mapping);
  if (!opened) return ksym::Fail(std::move(opened.error()));
  if (!MaySpeak(file, file.pid, *opened)) return FailApart();
  auto readable = ksym::OpenHeld(*opened);
  if (!readable) return ksym::Fail(std::move(readable.error()));
  return SourceOf(std::move(*opened), file.size, file.mtime_ns);
}

// Through its process, or, as that may be gone, through others that map it.
ksym::Result<ksym::ByteSource> UnwindTables::Open(File& file) {
  if (file.is_vdso) return ksym::ByteSource::OfMemory(ksym::OwnVdsoImage());
  auto source = OpenOnce(file);
  const bool was_searched = file.open_failures.last_round == round_;
  const bool is_known = source || ksym::IsRemote(source.error());
  size_t tries = is_known || was_searched ? 0 : kMostHolders;
  for (const auto& [id, process] : processes_) {
    if (tries == 0) break;
    const auto at = std::ranges::find(process.files, &file);
    if (at == process.files.end() || id.pid == file.pid) continue;
    --tries;
    file.pid = id.pid;
    file.mapping =
        process.mappings[static_cast<size_t>(at - process.files.begin())];
    source = OpenOnce(file);
    if (source || ksym::IsRemote(source.error())) break;
  }
  return source;
}

void UnwindTables::Ask(File& file, uint64_t wanted) {
  if (file.job != 0) {
    if (wanted > 0 && std::exchange(file.is_expected, false)) --expected_jobs_;
    builder_.Want(file.job, wanted);
    return;
  }
  const uint32_t pid = file.pid;
  const bool is_refused = file.state == File::State::kRefused;
  File::OpenFailures& failures = file.open_failures;
  if (failures.last_round == round_ &&
      (is_refused || failures.last_pid == pid)) {
    return;
  }
  auto source = Open(file);
  if (!source && ksym::IsRemote(source.error()) && opener_) {
    return BeginOpening(file, wanted);
  }
  if (!source) return FailToOpen(file, pid);
  if (is_refused && failures.rounds >= kMostFailures) {
    file.state = File::State::kPending;
    has_newly_wanted_ = true;
  }
  failures = {};
  file.job = ++last_job_;
  queued_[file.job] = &file;
  builder_.Add(
      {.id = file.job, .wanted = wanted, .source = std::move(*source)});
}

// The file is pending until it is there, as while its table is built.
void UnwindTables::BeginOpening(File& file, uint64_t wanted) {
  file.job = ++last_job_;
  queued_[file.job] = &file;
  openings_[file.job] = {.id = opener_->BeginOpening(file.pid, file.mapping),
                         .wanted = wanted,
                         .pid = file.pid,
                         .begun = Clock::now()};
}

// Whether stacks do not wait for it any more.
bool UnwindTables::IsPutOff(const File& file) const {
  const auto opening = openings_.find(file.job);
  return opening != openings_.end() &&
         Clock::now() - opening->second.begun > kOpeningPatience;
}

// A file that is put off may never come; others come soon.
bool UnwindTables::IsBuilding() const {
  size_t put_off = 0;
  for (const auto& [job, opening] : openings_) {
    if (Clock::now() - opening.begun > kOpeningPatience) ++put_off;
  }
  return queued_.size() > expected_jobs_ + put_off;
}

void UnwindTables::TakeOpened() {
  for (auto at = openings_.begin(); at != openings_.end();) {
    auto opened = opener_->TakeOpened(at->second.id);
    if (!opened) {
      ++at;
      continue;
    }
    const auto [job, opening] = *at;
    at = openings_.erase(at);
    File& file = *queued_.at(job);
    auto source = !*opened ? ksym::Fail(std::move(opened->error()))
                  : MaySpeak(file, opening.pid, **opened)
                      ? SourceOf(std::move(**opened), file.size, file.mtime_ns)
                      : FailApart();
    if (source) {
      file.open_failures = {};
      builder_.Add(
          {.id = job, .wanted = opening.wanted, .source = std::move(*source)});
      continue;
    }
    queued_.erase(job);
    file.job = 0;
    expected_jobs_ -= std::exchange(file.is_expected, false) ? 1 : 0;
    FailToOpen(file, opening.pid);
  }
}

// Its processes may just be gone, or there are no descriptors left.
void UnwindTables::Expect(uint32_t pid,
                          const std::vector<ksym::Mapping>& mappings) {
  for (const ksym::Mapping& mapping : mappings) {
    if (expected_files_ >= kMostExpectedFiles) return;
    const uint64_t bytes = mapping.end - mapping.start;
    if (expected_bytes_ + bytes > kMostExpectedBytes) continue;
    File* file = FileOf(pid, mapping);
    if (file == nullptr || file->is_wanted) continue;
    file->is_wanted = true;
    Ask(*file, 0);
    if (file->job == 0) continue;
    file->is_expected = true;
    ++expected_jobs_;
    ++expected_files_;
    expected_bytes_ += bytes;
  }
}

void UnwindTables::FailToOpen(File& file, uint32_t pid) {
  File::OpenFailures& failures = file.open_failures;
  failures.last_pid = pid;
  if (std::exchange(failures.last_round, round_) == round_) return;
  if (!file.is_pending() || ++failures.rounds < kMostFailures) return;
  if (failures.patience == Clock::duration()) ++statistics_.files_failed;
  file.state = File::State::kRefused;
  file.refused = Clock::now() + failures.patience;
  failures.patience = std::clamp<Clock::duration>(
      2 * failures.patience, kFirstPatience, kMostPatience);
}

void UnwindTables::Fail(File& file) {
  ++statistics_.files_failed;
  file.has_failed = true;
}

}  // namespace profd
