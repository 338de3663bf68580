// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/history/history_directory.h"
#include "daemon/history/limits.h"
#include "daemon/history/summary.h"
#include "daemon/history/table_order.h"
#include "ksym/base/file.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr mode_t kFileMode = 0666;
// A journal is sealed long before a reader refuses it.
constexpr uint64_t kMaxJournalBytes = kMaxStoredBytes / 2;

bool IsDiskFull(const ksym::Error& error) {
  return error.sys_errno() == ENOSPC || error.sys_errno() == EDQUOT;
}

// Segments that were being written when their writer ended, where the file
// system gives such files a name.
void RemoveAbandonedFiles(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end;
       !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const size_t dot = name.rfind('.');
    if (dot != std::string::npos && ParseFileName(name.substr(0, dot))) {
      ksym::AtomicFile::RemoveAbandoned(at->path().string());
    }
  }
}

}  // namespace

Result<HistoryWriter> HistoryWriter::Open(std::string directory, Limits limits,
                                          Run run, uint64_t now_unix_ns) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return ksym::FailErrno(error.value(), directory);
  HistoryWriter writer(std::move(directory), limits, std::move(run));
  // Nothing is read before the directory is ours: another writer's journal is
  // not to be made a segment of.
  if (auto locked = writer.Lock(); !locked) {
    return Fail(std::move(locked.error()));
  }
  if (auto read = writer.ReadDirectory(); !read) {
    return Fail(std::move(read.error()));
  }
  writer.Enforce(now_unix_ns);
  return writer;
}

Status HistoryWriter::Lock() {
  const std::string path = stored_.directory() + "/lock";
  lock_ = ksym::UniqueFd(::open(
      path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!lock_.valid()) return ksym::FailErrno(errno, path);
  // It goes with the descriptor, however this process ends (flock(2)).
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return ksym::FailErrno(errno, path);
  return Fail(
      ErrorCode::kInvalid,
      stored_.directory() + ": another service writes its history there");
}

Status HistoryWriter::ReadDirectory() {
  RemoveAbandonedFiles(stored_.directory());
  const auto listing = ListDirectory(stored_.directory());
  if (!listing) return Fail(listing.error());
  std::vector<FileName> journals;
  for (const FileName& name : listing->files) {
    next_sequence_ = std::max(next_sequence_, name.sequences.last + 1);
    if (!name.is_segment) {
      journals.push_back(name);
      continue;
    }
    stored_.Add(name);
  }
  // Their writer ended before it could remove them.
  RemoveCovered(*listing);
  for (const FileName& name : journals) Recover(name);
  stored_.Sort();
  return {};
}

// Those that a reader leaves out may be all that there is of their time, where
// what covers them is damaged, or where somebody put files of another history
// there. Then they stay.
void HistoryWriter::RemoveCovered(const DirectoryListing& listing) {
  const FileName* last_cover = nullptr;
  bool is_right = false;
  for (const FileName& name : listing.covered) {
    // Each covers what begins with it, up to where the next one begins.
    const auto next = std::ranges::upper_bound(
        listing.files, name.sequences.first, {},
        [](const FileName& file) { return file.sequences.first; });
    const FileName* const cover = &*std::prev(next);
    if (std::exchange(last_cover, cover) != cover) {
      const auto bytes = ReadHistoryFile(stored_.directory(), *cover);
      is_right = bytes && DecodeFile(*cover, *bytes);
      if (!is_right) ++counts_.files_bad;
    }
    const bool is_within =
        cover->sequences.last >= name.sequences.last &&
        (!name.is_segment ||
         (name.begin_s >= cover->begin_s && name.end_s <= cover->end_s));
    if (is_right && is_within) stored_.Remove(name);
  }
}

// A journal that another writer left becomes a segment. One that cannot be
// read, or for which there is no room, stays and is deleted as the oldest some
// day.
void HistoryWriter::Recover(const FileName& journal) {
  const auto bytes = ReadHistoryFile(stored_.directory(), journal);
  auto content = bytes ? DecodeJournal(*bytes)
                       : Result<JournalContent>(Fail(bytes.error()));
  if (!content) {
    ++counts_.files_bad;
    return stored_.Add(journal);
  }
  counts_.bytes_torn += content->bytes_after;
  if (!content->tables.parts.empty() &&
      !WriteSegment(content->tables, journal.sequences.first)) {
    return stored_.Add(journal);
  }
  // The segment is on the disk by now, or there was nothing to keep.
  ::unlink(stored_.PathOf(journal).c_str());
}

void HistoryWriter::Add(const Profile& part) {
  if (adder_->Add(part, run_)) return;
  // It may fit a new file; what is not yet written stays with the old one.
  if (adder_->tables().parts.size() == written_.parts && !adder_->empty()) {
    Seal();
    if (adder_->Add(part, run_)) return;
  }
  ++counts_.parts_dropped;
  counts_.samples_dropped += part.accounting.emitted;
}

Status HistoryWriter::Commit(uint64_t now_unix_ns) {
  Status done;
  if (adder_->tables().parts.size() != written_.parts) {
    if (journal_began_unix_ns_ == 0) journal_began_unix_ns_ = now_unix_ns;
    done = Append();
    // What cannot be written must not grow for ever.
    if (!done && adder_->memory_bytes() > limits_.journal_memory_bytes) {
      Forget();
    }
  }
  if (IsSealDue(now_unix_ns)) Seal();
  // Last: what was just written counts.
  Enforce(now_unix_ns);
  return done;
}

Status HistoryWriter::BeginJournal() {
  const FileName name = JournalName(next_sequence_);
  const std::string path = stored_.PathOf(name);
  ksym::UniqueFd fd(
      // No number is used twice: readers would take one file for the other.
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (!fd.valid()) return ksym::FailErrno(errno, path);
  const std::string header = JournalHeader(next_sequence_);
  auto written = ksym::WriteAll(fd.get(), header);
  // The name must be on the disk before a record in it can count as written.
  if (written) written = stored_.Sync();
  if (!written) {
    ::unlink(path.c_str());
    return Fail(std::move(written.error()).WithContext(path));
  }
  ++next_sequence_;
  journal_ = std::move(fd);
  journal_name_ = name;
  journal_bytes_ = header.size();
  return {};
}

Status HistoryWriter::Append() {
  const auto record = EncodeRecord(adder_->tables(), written_);
  if (!record) return Fail(record.error());
  Status done;
  // Each round deletes a file, so it ends.
  do {
    done = AppendOnce(*record);
  } while (!done && !journal_is_torn_ && IsDiskFull(done.error()) &&
           DeleteOldest());
  if (!done) {
    ++counts_.write_failures;
    // A later record would not be found behind half of this one, and another
    // journal would lack what the tables had before.
    if (std::exchange(journal_is_torn_, false)) Forget();
    return done;
  }
  ++counts_.records;
  written_ = adder_->tables().sizes();
  return {};
}

Status HistoryWriter::AppendOnce(const std::string& record) {
  if (!journal_.valid()) {
    if (auto begun = BeginJournal(); !begun) return begun;
  }
  auto written = ksym::WriteAll(journal_.get(), record);
  // The size goes with the data where it has changed (fdatasync(2)); times are
  // not needed.
  if (written && ::fdatasync(journal_.get()) != 0) {
    written = ksym::FailErrno(errno, "fdatasync");
  }
  if (written) {
    journal_bytes_ += record.size();
    return {};
  }
  // What was written of it would hide every later record from readers.
  const auto end = static_cast<off_t>(journal_bytes_);
  journal_is_torn_ = ::ftruncate(journal_.get(), end) != 0 ||
                     ::lseek(journal_.get(), end, SEEK_SET) != end;
  return Fail(
      std::move(written.error()).WithContext(stored_.PathOf(journal_name_)));
}

bool HistoryWriter::IsSealDue(uint64_t now_unix_ns) const {
  if (written_.parts == 0) return false;
  const uint64_t began = journal_began_unix_ns_;
  const auto journal_ns =
      static_cast<uint64_t>(limits_.journal.count()) * kNsPerSecond;
  // A clock that was set back must not keep a journal open.
  return now_unix_ns < began || now_unix_ns - began >= journal_ns ||
         adder_->memory_bytes() >= limits_.journal_memory_bytes ||
         journal_bytes_ >= kMaxJournalBytes;
}

// The tables have what is not written as well, where writing failed. It goes
// into the segment with the rest.
void HistoryWriter::Seal() {
  if (WriteSegment(adder_->tables(), journal_name_.sequences.first)) {
    // Needs no waiting: a journal that a crash brings back is covered by its
    // segment.
    ::unlink(stored_.PathOf(journal_name_).c_str());
    journal_.Reset();
  } else {
    ++counts_.write_failures;
    // The journal has what was written and is read as it is; the next writer
    // tries again.
    if (adder_->tables().parts.size() > written_.parts) Forget();
    LeaveJournal();
  }
  adder_ = std::make_unique<PartAdder>();
  written_ = {};
  journal_bytes_ = 0;
  journal_began_unix_ns_ = 0;
}

Status HistoryWriter::WriteSegment(Tables& tables, uint64_t sequence) {
  const Sequences sequences = {.first = sequence, .last = sequence};
  OrderTables(tables);
  const auto bytes = EncodeSummarized(tables, sequences);
  if (!bytes) return Fail(bytes.error());
  const FileName name = SegmentNameOf(tables, sequences);
  Status done;
  do {
    done = stored_.Write(name, *bytes);
  } while (!done && IsDiskFull(done.error()) && DeleteOldest());
  if (!done) return done;
  stored_.Add(name, bytes->size());
  ++counts_.segments;
  return {};
}

// Nothing is written to it any more.
void HistoryWriter::LeaveJournal() {
  if (!journal_.valid()) return;
  stored_.Add(journal_name_, journal_bytes_);
  journal_.Reset();
  journal_bytes_ = 0;
}

// Drops what was added and not written. What was written stays in the journal,
// which is not gone on with: its tables are those that are dropped.
void HistoryWriter::Forget() {
  const Tables& tables = adder_->tables();
  counts_.parts_dropped += tables.parts.size() - written_.parts;
  // By their parts: rows are in the order of a segment where one was tried.
  for (const Row& row : tables.rows) {
    if (row.part >= written_.parts) counts_.samples_dropped += row.count;
  }
  LeaveJournal();
  adder_ = std::make_unique<PartAdder>();
  written_ = {};
  journal_began_unix_ns_ = 0;
}

Upkeep::Moment HistoryWriter::MomentOf(uint64_t now_unix_ns) const {
  Upkeep::Moment moment = {.now_unix_ns = now_unix_ns};
  if (!adder_->empty()) {
    moment.journal_began_unix_ns = adder_->tables().parts.front().start_unix_ns;
  }
  return moment;
}

Status HistoryWriter::Compact(uint64_t now_unix_ns,
                              const std::function<bool()>& is_over) {
  const auto done = upkeep_.Compact(stored_, MomentOf(now_unix_ns), is_over);
  if (!done) {
    ++counts_.compaction_failures;
    return Fail(done.error());
  }
  if (*done) ++counts_.compactions;
  return {};
}

Status HistoryWriter::Thin(uint64_t now_unix_ns,
                           const std::function<bool()>& is_over) {
  if (limits_.thin_after.count() == 0) return {};
  const auto folded =
      upkeep_.Thin(stored_, MomentOf(now_unix_ns), limits_.thin_after, is_over);
  if (!folded) {
    ++counts_.thinning_failures;
    return Fail(folded.error());
  }
  if (const std::optional<uint32_t>& stacks = *folded; stacks) {
    ++counts_.thinnings;
    counts_.stacks_folded += *stacks;
  }
  return {};
}

bool HistoryWriter::DeleteOldest() {
  if (!stored_.DeleteOldest()) return false;
  ++counts_.files_deleted;
  return true;
}

// By bytes first, then by age. The open journal stays. There are never so many
// files that readers refuse the directory.
void HistoryWriter::Enforce(uint64_t now_unix_ns) {
  constexpr size_t kFewFiles = 16;
  while ((bytes() > limits_.max_bytes ||
          stored_.all().size() > kMaxHistoryFiles - kFewFiles) &&
         DeleteOldest()) {
  }
  const uint64_t now_s = now_unix_ns / kNsPerSecond;
  const auto max_age_s = static_cast<uint64_t>(limits_.max_age.count());
  // A journal that was left behind tells no time, and goes with what is newer.
  for (;;) {
    const auto first = std::ranges::find_if(
        stored_.all(),
        [](const StoredFile& file) { return file.name.is_segment; });
    if (first == stored_.all().end() || first->name.end_s + max_age_s >= now_s)
      return;
    DeleteOldest();
  }
}

}  // namespace profd::history
