// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_tables.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "ksym/base/bounded_name.h"

namespace profd {
namespace {

using std::chrono::milliseconds;

// Smaller pieces of a table would be too many.
constexpr size_t kFewestSlots = UNWIND_SHARD_SLOTS / 16;
// Stacks that wait for a file come before all processes without.
constexpr uint64_t kWantedNow = uint64_t{1} << 32;
// Upper ends of what building and placing one file takes.
constexpr milliseconds kFixedCost(15);
constexpr uint64_t kBytesPerMillisecond = 1 << 20;

UnwindTables::Clock::duration CostOf(uint64_t file_bytes) {
  return kFixedCost + milliseconds(file_bytes / kBytesPerMillisecond);
}

}  // namespace

UnwindTables::UnwindTables(UnwindMaps maps, TableBuilder::Build build,
                           std::shared_ptr<GuardedOpener> opener,
                           Meanwhile meanwhile)
    : maps_(std::move(maps)),
      opener_(std::move(opener)),
      meanwhile_(std::move(meanwhile)),
      builder_(std::move(build)) {}

void UnwindTables::Update(const ksym::ProcessImage& image) {
  Process& process = processes_[image.id];
  process.mappings = image.mappings;
  Acquire(image.id, process);
}

void UnwindTables::Acquire(const ksym::ProcessId& id, Process& process) {
  std::vector<File*> files;
  for (const ksym::Mapping& mapping : process.mappings) {
    File* file = FileOf(id.pid, mapping);
    if (file != nullptr) ++file->users;
    files.push_back(file);
  }
  // After the new ones are held, or a file of both would be without users.
  Release(process);
  process.files = std::move(files);
  process.evicted = false;
  process.waited = false;
  process.changed = true;
  stale_.insert(id);
  for (const File* file : process.files) {
    if (file != nullptr && file->cpython) TellOfRuntime(id, process, *file);
  }
}

void UnwindTables::TellOfRuntime(const ksym::ProcessId& id,
                                 const Process& process,
                                 const File& file) const {
  if (!runtime_observer_ || !file.cpython) return;
  for (size_t i = 0; i < process.files.size(); ++i) {
    if (process.files[i] != &file) continue;
    const auto load_bias = file.table.LoadBias(process.mappings[i]);
    if (!load_bias) continue;
    runtime_observer_(id, process.mappings[i], *load_bias, *file.cpython);
    return;
  }
}

// At once, and not with the tables: the sampler finds a runtime's frames of
// stacks that are copied, too.
void UnwindTables::TakeRuntime(File& file, BuiltTable& built) {
  if (!built.cpython_refusal.empty()) {
    std::string room;
    warnings_.Add("no Python frames of programs with " +
                  std::string(ksym::BoundPath(file.mapping.path, room)) + ": " +
                  built.cpython_refusal);
  }
  file.cpython = built.cpython;
  if (!file.cpython) return;
  for (const auto& [id, process] : processes_) {
    TellOfRuntime(id, process, file);
  }
}

void UnwindTables::NoteSample(const ksym::ProcessId& id,
                              Clock::time_point time) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  if (process->second.seen == Clock::time_point()) {
    process->second.first_seen = time;
  }
  ++process->second.samples;
  process->second.seen = std::max(process->second.seen, time);
  if (process->second.evicted) Acquire(id, process->second);
}

void UnwindTables::Forget(const ksym::ProcessId& id) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  maps_.Withdraw(id);
  Release(process->second);
  stale_.erase(id);
  processes_.erase(process);
}

void UnwindTables::Release(Process& process) {
  for (File* file : process.files) {
    if (file == nullptr) continue;
    if (--file->users == 0) file->used = Clock::now();
  }
  process.files.clear();
}

// Those that map a file whose table is to come.
void UnwindTables::FindStale() {
  for (const auto& [id, process] : processes_) {
    const bool is_stale = std::ranges::any_of(
        process.files,
        [](const File* file) { return file != nullptr && file->is_awaited(); });
    if (is_stale) stale_.insert(id);
  }
}

void UnwindTables::Build(Clock::duration budget, Clock::time_point deadline) {
  const auto until = std::min(Clock::now() + budget, deadline);
  ++round_;
  if (opener_) opener_->Sweep();
  TakeBuilt();
  TakeApart();
  if (std::exchange(has_newly_wanted_, false)) FindStale();
  using Entry = std::pair<const ksym::ProcessId, Process>;
  std::vector<Entry*> stale;
  stale.reserve(stale_.size());
  for (const auto& id : stale_) stale.push_back(&*processes_.find(id));
  std::ranges::sort(stale, std::greater(),
                    [](const Entry* e) { return e->second.samples; });
  for (Entry* entry : stale) {
    if (waits_for_room_ || Clock::now() >= until) return;
    // It may have had to make room for one before it.
    if (!stale_.contains(entry->first)) continue;
    const bool is_whole =
        BuildFiles(entry->first, entry->second, until, deadline);
    if (waits_for_room_) return;
    if (entry->second.evicted) continue;
    // What was asked for is there at the next call, for the most part: one list
    // instead of two.
    const bool is_new = !is_whole && !std::exchange(entry->second.waited, true);
    if (is_whole || (entry->second.changed && !is_new)) {
      Publish(entry->first, entry->second);
    }
    const bool is_refused = entry->second.refused != Clock::time_point();
    if (is_whole || is_refused) stale_.erase(entry->first);
  }
}

// Places what is there and asks for the rest. True when there is no rest.
bool UnwindTables::BuildFiles(const ksym::ProcessId& id, Process& process,
                              Clock::time_point until,
                              Clock::time_point deadline) {
  bool is_whole = true;
  Settled settled;
  for (size_t i = 0; i < process.files.size(); ++i) {
    File* file = process.files[i];
    if (file == nullptr) continue;
    meanwhile_();
    if (file->is_awaited()) {
      const auto now = Clock::now();
      if (file->rows) {
        if (now >= until) return false;
        process.changed |= Place(*file);
        if (waits_for_room_ || process.evicted) return false;
      } else if (file->has_failed) {
        file->state = File::State::kNone;
      } else if (now + CostOf(file->size) < deadline) {
        if (file->job == 0) {
          file->pid = id.pid;
          file->mapping = process.mappings[i];
        }
        Ask(*file, std::max<uint64_t>(process.samples, 1));
      }
      is_whole &= !file->is_awaited();
    }
    settled.Count(*file);
  }
  // Others may have had them placed.
  process.changed |= settled != process.settled;
  return is_whole;
}

void UnwindTables::TakeBuilt() {
  TakeOpened();
  for (TableBuilder::Result& result : builder_.Take()) {
    const auto queued = queued_.find(result.id);
    if (queued == queued_.end()) continue;
    File& file = *queued->second;
    queued_.erase(queued);
    file.job = 0;
    expected_jobs_ -= std::exchange(file.is_expected, false) ? 1 : 0;
    file.used = Clock::now();
    file.owner = result.table.owner;
    if (!result.table.rows) {
      Fail(file);
      if (!result.table.refusal.empty()) WarnOf(file, result.table.refusal);
      continue;
    }
    SetRows(file, std::move(result.table.rows));
    if (!file.is_pending()) continue;
    file.table.base = file.rows->base;
    file.table.code = std::move(result.table.code);
    TakeRuntime(file, result.table);
    file.pieces = std::move(result.table.pieces);
  }
}

void UnwindTables::WaitForTable(Clock::duration time) {
  // The builder has nothing to wait for before that.
  if (openings_.size() == queued_.size() && !openings_.empty()) {
    opener_->WaitForOpened(std::chrono::duration_cast<milliseconds>(time));
  } else {
    builder_.Wait(time);
  }
  TakeBuilt();
}

// True when it has a place now.
bool UnwindTables::Place(File& file) {
  if (PlacePieces(file, UNWIND_SHARD_SLOTS, 0)) {
    ++statistics_.files;
    file.state = File::State::kReady;
    return true;
  }
  DropTable(file);
  // Again, when what was freed can be used.
  waits_for_room_ = MakeRoom(file.rows->rows.size());
  if (waits_for_room_) return false;
  ++statistics_.files_refused;
  WarnOf(file, "no room for a table of " +
                   std::to_string(file.rows->rows.size()) + " rows now");
  file.state = File::State::kRefused;
  file.refused = Clock::now();
  return false;
}

// The table from `begin` on; false when there is no room for all of it.
bool UnwindTables::PlacePieces(File& file, size_t max_slots, uint64_t begin) {
  const bool is_cut =
      begin == 0 && max_slots == UNWIND_SHARD_SLOTS && !file.pieces.empty();
  const auto pieces = is_cut ? std::exchange(file.pieces, {})
                             : CutIntoPieces(file.rows->rows, file.rows->size,
                                             max_slots, begin);
  // All but the last one fill a shard.
  if (max_slots == UNWIND_SHARD_SLOTS && pieces.size() > 2) {
    maps_.AddShards(pieces.size() - 1);
  }
  for (const UnwindPiece& piece : pieces) {
    meanwhile_();
    auto added = maps_.Add(piece);
    if (!added) Warn(added.error());
    const auto place = std::move(added).value_or(std::nullopt);
    if (!place) {
      // There may be room between other tables.
      return max_slots > kFewestSlots &&
             PlacePieces(file, max_slots / 4, piece.begin);
    }
    statistics_.rows_bytes += piece.slots() * sizeof(uint64_t);
    file.table.pieces.push_back(
        {.begin = piece.begin,
         .end = piece.end,
         .rows_at = static_cast<uint32_t>(piece.index.size()),
         .place = *place});
  }
  return true;
}

std::optional<ksym::CodeAt> UnwindTables::CodeOf(uint32_t pid,
                                                 const ksym::Mapping& mapping) {
  File* file = FileOf(pid, mapping);
  ksym::CodeAt code = {.kind = ksym::CodeAt::Kind::kNoTable};
  if (file == nullptr) return code;
  file->used = Clock::now();
  if (!file->is_wanted) file->is_wanted = has_newly_wanted_ = true;
  if (!file->rows && !file->has_failed) {
    // This process is here, those that mapped it before may be gone.
    file->pid = pid;
    file->mapping = mapping;
    Ask(*file, kWantedNow);
  }
  // It may have come since somebody looked.
  if (file->job != 0 && IsPutOff(*file)) TakeOpened();
  if (file->job != 0 && !IsPutOff(*file)) return std::nullopt;
  if (!file->rows) return code;
  const auto load_bias = file->table.LoadBias(mapping);
  if (!load_bias) return code;
  return {{.kind = ksym::CodeAt::Kind::kTable,
           .table = file->rows.get(),
           .load_bias = *load_bias}};
}

void UnwindTables::WantAll(const ksym::ProcessId& id) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  for (File* file : process->second.files) {
    if (file == nullptr || !file->is_pending() || file->is_wanted) continue;
    file->is_wanted = has_newly_wanted_ = true;
  }
}

void UnwindTables::SetRows(File& file,
                           std::shared_ptr<const ksym::UnwindTable> rows) {
  const auto bytes_of = [](const auto& table) {
    return table ? table->rows.size() * sizeof(ksym::UnwindRow) : 0;
  };
  row_bytes_ += bytes_of(rows);
  row_bytes_ -= bytes_of(file.rows);
  file.rows = std::move(rows);
}

// Before it is erased; returns the slots that it had.
uint64_t UnwindTables::Discard(File& file) {
  SetRows(file, nullptr);
  return DropTable(file);
}

// The slots that it had.
uint64_t UnwindTables::DropTable(File& file) {
  uint64_t slots = 0;
  for (const UnwindFile::Piece& piece : file.table.pieces) {
    maps_.FreeSlots(piece.place);
    slots += piece.place.count;
  }
  statistics_.rows_bytes -= slots * sizeof(uint64_t);
  file.table.pieces.clear();
  return slots;
}

void UnwindTables::Publish(const ksym::ProcessId& id, Process& process) {
  std::vector<unwind_mapping> list;
  bool is_whole = true;
  bool has_any = process.published;
  Settled settled;
  for (size_t i = 0; i < process.mappings.size(); ++i) {
    const File* file = process.files[i];
    const bool ready = file != nullptr && file->state == File::State::kReady;
    const bool pending = file != nullptr && file->is_pending();
    has_any |= ready;
    if (file != nullptr) settled.Count(*file);
    is_whole &= file == nullptr || !file->is_awaited();
    if (ready) {
      AppendUnwindMappings(process.mappings[i], file->table, list);
    } else {
      AppendUnwindMappings(process.mappings[i],
                           pending ? NoTable::kYet : NoTable::kEver, list);
    }
  }
  // With nothing but what is to come the whole stack is copied anyway.
  if (!is_whole && !has_any) return;
  const auto published = maps_.Publish(id, list);
  if (!published) Warn(published.error());
  if (!published) return RefuseList(id, process, 0);
  if (!*published) return RefuseList(id, process, list.size() + 1);
  process.changed = false;
  process.settled = settled;
  process.refused = {};
  statistics_.processes += process.published ? 0 : 1;
  process.published = true;
  if (!is_whole) return;
  process.samples = 0;
  if (!std::exchange(process.complete, true)) {
    delays_.Add(Clock::now() - process.first_seen);
  }
}

UnwindStatistics UnwindTables::statistics() const {
  UnwindStatistics statistics = statistics_;
  statistics.milliseconds =
      std::chrono::duration<double, std::milli>(builder_.busy()).count();
  statistics.median_delay = delays_.Median();
  statistics.longest_delay = delays_.longest();
  return statistics;
}

void UnwindTables::Warn(const ksym::Error& error) {
  if (std::exchange(warned_, true)) return;
  warnings_.Add("some stacks may be incomplete: " + error.message());
}

// Once of each file, with who is to be asked.
void UnwindTables::WarnOf(File& file, const std::string& why) {
  if (std::exchange(file.was_told, true)) return;
  std::string room;
  std::string text(ksym::BoundPath(file.mapping.path, room));
  if (file.owner) text += " (of user " + std::to_string(*file.owner) + ")";
  warnings_.Add("stacks through " + text + " may be incomplete: " + why);
}

}  // namespace profd
