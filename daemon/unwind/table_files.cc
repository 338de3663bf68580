// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_files.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "ksym/base/bounded_name.h"
#include "ksym/elf/elf_image.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/vdso.h"
#include "ksym/runtime/file_runtimes.h"

namespace profd {
namespace {

// Processes through which a file is tried in a round.
constexpr size_t kMaxHolders = 16;
// A stack waits for so long for a file that somebody else opens.
constexpr std::chrono::milliseconds kOpeningPatience(100);
// How long a table that nobody maps is kept for the next one who does.
constexpr std::chrono::seconds kKeepUnused(30);
// How often that is looked at.
constexpr std::chrono::seconds kSweepPeriod(1);

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

std::vector<ksym::ElfSegment> CodeOf(const ksym::ElfImage& image) {
  std::vector<ksym::ElfSegment> code;
  std::ranges::copy_if(image.segments(), std::back_inserter(code),
                       &ksym::ElfSegment::executable);
  return code;
}

ksym::Result<ksym::ByteSource> FailApart() {
  return ksym::Fail(ksym::ErrorCode::kPermission, "of one mount namespace");
}

}  // namespace

TableFiles::TableFiles(Parts parts, TablePlacer& placer,
                       ksym::WarningList& warnings)
    : queue_(std::move(parts.queue)),
      opener_(std::move(parts.opener)),
      host_(std::move(parts.host)),
      bounds_(parts.bounds),
      holders_(std::move(parts.holders)),
      placer_(placer),
      warnings_(warnings) {}

TableFiles::Key TableFiles::KeyOf(const ksym::Mapping& mapping) {
  if (mapping.inode == 0) return {};
  return {.device_major = mapping.device_major,
          .device_minor = mapping.device_minor,
          .inode = mapping.inode,
          .path = mapping.device_major == 0 ? mapping.path : ksym::SharedPath(),
          .mounts = 0};
}

// The file of the process's mount namespace; null if it has none. One that was
// opened is not used again when nobody has it: the number may be another
// namespace's by then.
TableFile* TableFiles::FindApart(uint32_t pid, Key key) {
  key.mounts = host_.mounts_of(pid);
  const auto at = key.mounts == 0 ? files_.end() : files_.find(key);
  if (at == files_.end()) return nullptr;
  TableFile& file = *at->second;
  const bool is_fresh = !file.rows && file.job == 0 && file.state.is_pending();
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
bool TableFiles::MaySpeak(TableFile& file, uint32_t pid,
                          const ksym::OpenedFile& opened) {
  if (file.is_apart) return true;
  if (opened.is_only_one || host_.is_trusted(opened.owner)) {
    file.is_for_all = true;
    return true;
  }
  Key key = KeyOf(file.mapping);
  key.mounts = host_.mounts_of(pid);
  if (key.mounts == 0 || files_.size() >= bounds_.files) return false;
  auto& apart = files_[key];
  if (!apart) {
    apart = std::make_unique<TableFile>();
    apart->is_apart = true;
    apart->state.Want();
    apart->used = host_.now();
  }
  has_apart_ = true;
  parted_.insert(&file);
  return false;
}

// Null for memory that is no file's.
TableFile* TableFiles::FileOf(uint32_t pid, const ksym::Mapping& mapping) {
  const bool is_vdso = mapping.path == "[vdso]";
  if (mapping.inode == 0 && !is_vdso) return nullptr;
  const Key key = KeyOf(mapping);
  if (has_apart_ && !is_vdso) {
    const auto of_all = files_.find(key);
    if (of_all == files_.end() || !of_all->second->is_for_all) {
      TableFile* apart = FindApart(pid, key);
      if (apart != nullptr) return HandOut(*apart, pid, mapping);
    }
  }
  if (files_.size() >= bounds_.files && !files_.contains(key)) return nullptr;
  auto& file = files_[key];
  if (file && file->users == 0 && file->job == 0 && file->state.is_wanted() &&
      !is_vdso && file->checked != round_) {
    file->checked = round_;
    // An inode that nobody mapped for a while may be another file's by now.
    if (!IsUnchanged(pid, mapping, *file)) {
      Discard(*file);
      file.reset();
    }
  }
  if (!file) {
    file = std::make_unique<TableFile>();
    file->is_vdso = is_vdso;
    file->checked = round_;
  }
  return HandOut(*file, pid, mapping);
}

// It is opened through that process from here on.
void TableFiles::SetHolder(uint32_t pid, const ksym::Mapping& mapping,
                           TableFile& file) {
  file.pid = pid;
  file.mapping = mapping;
}

TableFile* TableFiles::HandOut(TableFile& file, uint32_t pid,
                               const ksym::Mapping& mapping) {
  // This process is here; those that mapped it before are gone.
  if (file.users == 0) SetHolder(pid, mapping, file);
  return &file;
}

// One that is not local may be another by now.
bool TableFiles::IsUnchanged(uint32_t pid, const ksym::Mapping& mapping,
                             const TableFile& file) const {
  const auto held = host_.hold(pid, mapping);
  return held && held->size == file.size && held->mtime_ns == file.mtime_ns;
}

ksym::Result<ksym::ByteSource> TableFiles::OpenOnce(TableFile& file) {
  auto opened = host_.hold(file.pid, file.mapping);
  if (!opened) return ksym::Fail(std::move(opened.error()));
  if (!MaySpeak(file, file.pid, *opened)) return FailApart();
  auto readable = ksym::OpenHeld(*opened);
  if (!readable) return ksym::Fail(std::move(readable.error()));
  return SourceOf(std::move(*opened), file.size, file.mtime_ns);
}

// Through its process, or, as that may be gone, through others that map it.
ksym::Result<ksym::ByteSource> TableFiles::Open(TableFile& file) {
  if (file.is_vdso) return ksym::ByteSource::OfMemory(ksym::OwnVdsoImage());
  auto source = OpenOnce(file);
  const bool is_known = source || ksym::IsRemote(source.error());
  // Others were tried in this round already, and are asked again in the next.
  if (is_known || file.state.WasTriedIn(round_)) return source;
  for (const Holder& holder : holders_(file, kMaxHolders)) {
    if (holder.pid == file.pid) continue;
    SetHolder(holder.pid, holder.mapping, file);
    source = OpenOnce(file);
    if (source || ksym::IsRemote(source.error())) break;
  }
  return source;
}

void TableFiles::AskThrough(uint32_t pid, const ksym::Mapping& mapping,
                            uint64_t wanted, TableFile& file) {
  if (file.job == 0) SetHolder(pid, mapping, file);
  Ask(file, wanted);
}

void TableFiles::Ask(TableFile& file, uint64_t wanted) {
  if (file.job != 0) {
    if (wanted > 0 && std::exchange(file.is_expected, false)) --expected_jobs_;
    queue_->Want(file.job, wanted);
    return;
  }
  const uint32_t pid = file.pid;
  if (!file.state.MayOpen(round_, pid)) return;
  auto source = Open(file);
  if (!source && ksym::IsRemote(source.error()) && opener_) {
    return BeginOpening(file, wanted);
  }
  if (!source) return NoteOpenFailure(file, pid);
  NoteOpened(file);
  file.job = ++last_job_;
  queued_[file.job] = &file;
  queue_->Add({.id = file.job, .wanted = wanted, .source = std::move(*source)});
}

// The file is pending until it is there, as while its table is built.
void TableFiles::BeginOpening(TableFile& file, uint64_t wanted) {
  file.job = ++last_job_;
  queued_[file.job] = &file;
  openings_[file.job] = {.id = opener_->BeginOpening(file.pid, file.mapping),
                         .wanted = wanted,
                         .pid = file.pid,
                         .begun = host_.now()};
}

bool TableFiles::IsComing(const TableFile& file) {
  // It may have come since somebody looked.
  if (file.job != 0 && IsPutOff(file)) TakeOpened();
  return file.job != 0 && !IsPutOff(file);
}

// Whether stacks do not wait for it any more.
bool TableFiles::IsPutOff(const TableFile& file) const {
  const auto opening = openings_.find(file.job);
  return opening != openings_.end() &&
         host_.now() - opening->second.begun > kOpeningPatience;
}

// A file that is put off may never come; others come soon.
bool TableFiles::IsBuilding() const {
  size_t put_off = 0;
  for (const auto& [job, opening] : openings_) {
    if (host_.now() - opening.begun > kOpeningPatience) ++put_off;
  }
  return queued_.size() > expected_jobs_ + put_off;
}

void TableFiles::TakeOpened() {
  for (auto at = openings_.begin(); at != openings_.end();) {
    auto opened = opener_->TakeOpened(at->second.id);
    if (!opened) {
      ++at;
      continue;
    }
    // The job goes on with another owner: from the opener to the queue, under
    // the same number, so that the file stays one that is coming.
    const auto [job, opening] = *at;
    at = openings_.erase(at);
    TableFile& file = *queued_.at(job);
    auto source = !*opened ? ksym::Fail(std::move(opened->error()))
                  : MaySpeak(file, opening.pid, **opened)
                      ? SourceOf(std::move(**opened), file.size, file.mtime_ns)
                      : FailApart();
    if (source) {
      NoteOpened(file);
      queue_->Add(
          {.id = job, .wanted = opening.wanted, .source = std::move(*source)});
      continue;
    }
    EndJob(file);
    NoteOpenFailure(file, opening.pid);
  }
}

void TableFiles::EndJob(TableFile& file) {
  queued_.erase(std::exchange(file.job, 0));
  expected_jobs_ -= std::exchange(file.is_expected, false) ? 1 : 0;
}

std::vector<TableFile*> TableFiles::TakeBuilt() {
  TakeOpened();
  std::vector<TableFile*> interpreters;
  for (TableQueue::Result& result : queue_->Take()) {
    const auto queued = queued_.find(result.id);
    if (queued == queued_.end()) continue;
    TableFile& file = *queued->second;
    EndJob(file);
    if (TakeTable(file, std::move(result.table))) {
      interpreters.push_back(&file);
    }
  }
  return interpreters;
}

// True when it turned out to hold an interpreter.
bool TableFiles::TakeTable(TableFile& file, BuiltTable table) {
  file.used = host_.now();
  file.owner = table.owner;
  if (!table.rows) {
    ++counts_.failed;
    file.state.Fail();
    if (!table.refusal.empty()) WarnOf(file, table.refusal);
    return false;
  }
  SetRows(file, std::move(table.rows));
  // Else it has its place, and these rows serve copied stacks.
  if (!file.state.is_pending()) return false;
  file.table.base = file.rows->base;
  file.table.code = std::move(table.code);
  file.pieces = std::move(table.pieces);
  for (const auto& [language, why] : table.runtimes.refusals) {
    std::string room;
    warnings_.Add("no " + std::string(language) + " frames of programs with " +
                  std::string(ksym::BoundPath(file.mapping.path, room)) + ": " +
                  why);
  }
  file.runtimes = std::move(table.runtimes);
  return file.runtimes.has_any();
}

void TableFiles::Wait(SteadyClock::duration time) const {
  // The queue has nothing to wait for before that.
  if (openings_.size() == queued_.size() && !openings_.empty()) {
    opener_->WaitForOpened(
        std::chrono::duration_cast<std::chrono::milliseconds>(time));
  } else {
    queue_->Wait(time);
  }
}

TableFile* TableFiles::FindRuntime(uint32_t pid, const ksym::Mapping& mapping) {
  TableFile* file = FileOf(pid, mapping);
  if (file == nullptr || file->is_vdso) return nullptr;
  // A table that is being made says the same, but later.
  const bool is_settled = file->state.is_wanted() && file->job == 0;
  if (is_settled || std::exchange(file->was_searched, true)) return nullptr;
  file->used = host_.now();
  const auto source = OpenOnce(*file);
  if (!source) return nullptr;
  const auto image = ksym::ElfImage::Parse(*source);
  if (!image) return nullptr;
  // Why one is not known is said when its table is made.
  file->runtimes = ksym::FindRuntimes(*source, *image);
  if (!file->runtimes.has_any()) return nullptr;
  file->table.code = CodeOf(*image);
  return file;
}

void TableFiles::Expect(uint32_t pid,
                        const std::vector<ksym::Mapping>& mappings,
                        Expected expected) {
  for (const ksym::Mapping& mapping : mappings) {
    if (expected_.is_full()) return;
    const uint64_t bytes = mapping.end - mapping.start;
    if (!expected_.HasRoomFor(bytes)) continue;
    TableFile* file = FileOf(pid, mapping);
    if (file == nullptr || !file->state.Want()) continue;
    Ask(*file, expected == Expected::kNow ? 1 : 0);
    if (file->job == 0) continue;
    expected_.Add(bytes);
    if (expected == Expected::kNow) continue;
    file->is_expected = true;
    ++expected_jobs_;
  }
}

void TableFiles::NoteOpened(TableFile& file) {
  newly_wanted_ |= file.state.NoteOpened();
}

// Its processes may just be gone, or there are no descriptors left.
void TableFiles::NoteOpenFailure(TableFile& file, uint32_t pid) {
  if (file.state.NoteOpenFailure(round_, pid, host_.now())) ++counts_.failed;
}

void TableFiles::BeginRound() {
  ++round_;
  if (opener_) opener_->Sweep();
}

void TableFiles::Leave(TableFile& file) {
  if (--file.users == 0) file.used = host_.now();
}

void TableFiles::SetRows(TableFile& file,
                         std::shared_ptr<const ksym::UnwindTable> rows) {
  const auto bytes_of = [](const auto& table) {
    return table ? table->rows.size() * sizeof(ksym::UnwindRow) : 0;
  };
  row_bytes_ += bytes_of(rows);
  row_bytes_ -= bytes_of(file.rows);
  file.rows = std::move(rows);
}

bool TableFiles::Place(TableFile& file) {
  if (!placer_.Place(file)) return false;
  file.state.Placed();
  return true;
}

void TableFiles::RefuseRoom(TableFile& file) {
  WarnOf(file, "no room for a table of " +
                   std::to_string(file.rows->rows.size()) + " rows now");
  file.state.RefuseRoom(host_.now());
}

// Before it is erased; returns the slots that it had.
uint64_t TableFiles::Discard(TableFile& file) {
  SetRows(file, nullptr);
  return placer_.Drop(file);
}

uint64_t TableFiles::EvictUnused() {
  std::vector<RoomHolder> holders;
  holders.reserve(files_.size());
  for (const auto& [key, file] : files_) {
    holders.push_back(
        {.can_go = file->users == 0 && file->job == 0 && file->state.is_ready(),
         .used = file->used});
  }
  const auto unused = LongestUnused(holders);
  if (!unused) return 0;
  const auto file = std::next(files_.begin(), static_cast<ptrdiff_t>(*unused));
  const uint64_t slots = Discard(*file->second);
  files_.erase(file);
  ++counts_.evicted;
  return slots;
}

void TableFiles::DropRows() {
  if (row_bytes_ <= bounds_.row_bytes) return;
  std::vector<TableFile*> files;
  for (const auto& [key, file] : files_) {
    // Rows without a place will get one, and can go then.
    const bool has_to_stay = file->state.is_pending() && file->users > 0;
    if (file->rows && !has_to_stay) files.push_back(file.get());
  }
  std::ranges::sort(files, {}, &TableFile::used);
  for (TableFile* file : files) {
    if (row_bytes_ <= bounds_.row_bytes) return;
    SetRows(*file, nullptr);
  }
}

void TableFiles::Sweep() {
  const auto now = host_.now();
  if (now < next_sweep_) return;
  next_sweep_ = now + kSweepPeriod;
  std::erase_if(files_, [&](const auto& entry) {
    TableFile& file = *entry.second;
    if (file.users > 0 || file.job != 0 || file.used + kKeepUnused > now) {
      return false;
    }
    Discard(file);
    return true;
  });
}

// Once of each file, with who is to be asked.
void TableFiles::WarnOf(TableFile& file, const std::string& why) {
  if (std::exchange(file.was_told, true)) return;
  std::string room;
  std::string text(ksym::BoundPath(file.mapping.path, room));
  if (file.owner) text += " (of user " + std::to_string(*file.owner) + ")";
  warnings_.Add("stacks through " + text + " may be incomplete: " + why);
}

}  // namespace profd
