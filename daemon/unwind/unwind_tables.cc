// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_tables.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <string>
#include <utility>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/table_budget.h"
#include "ksym/process/mapped_file.h"

namespace profd {
namespace {

// Stacks that wait for a file come before all processes without.
constexpr uint64_t kWantedNow = uint64_t{1} << 32;
// Processes that may go for others' lists, between two calls of Recycle().
constexpr uint32_t kMaxEvicted = 16;

// UNWIND_CODE_...: those that make code.
uint32_t CodeRuntimesOf(const ksym::FileRuntimes& runtimes) {
  return (runtimes.v8 != nullptr ? UNWIND_CODE_V8 : 0u) |
         (runtimes.hotspot ? UNWIND_CODE_HOTSPOT : 0u);
}

TableHost HostOf(UnwindTables::Parts& parts) {
  return parts.host ? *std::move(parts.host)
                    : TableHost::OfThisMachine(parts.opener);
}

}  // namespace

UnwindTables::UnwindTables(Parts parts)
    : UnwindTables(std::move(parts), HostOf(parts)) {}

UnwindTables::UnwindTables(Parts&& parts, TableHost host)
    : meanwhile_(std::move(parts.meanwhile)),
      now_(host.now),
      maps_(std::move(parts.maps)),
      placer_(*maps_, meanwhile_),
      files_({.queue = std::move(parts.queue),
              .opener = std::move(parts.opener),
              .host = std::move(host),
              .holders = [this](const TableFile& file,
                                size_t most) { return HoldersOf(file, most); },
              .bounds = parts.bounds},
             placer_, warnings_) {}

void UnwindTables::Update(const ksym::ProcessImage& image) {
  TableList& process = processes_[image.id];
  process.mappings = image.mappings;
  Acquire(image.id, process);
}

void UnwindTables::Acquire(const ksym::ProcessId& id, TableList& process) {
  std::vector<TableFile*> files;
  for (const ksym::Mapping& mapping : process.mappings) {
    TableFile* file = files_.FileOf(id.pid, mapping);
    if (file != nullptr) files_.Use(*file);
    files.push_back(file);
  }
  // After the new ones are held, or a file of both would be without users.
  Release(process);
  process.files = std::move(files);
  process.state.Acquired();
  stale_.insert(id);
  for (const TableFile* file : process.files) {
    if (file != nullptr) TellOfRuntime(id, process, *file);
  }
}

void UnwindTables::Release(TableList& process) {
  for (TableFile* file : process.files) {
    if (file != nullptr) files_.Leave(*file);
  }
  process.files.clear();
}

std::vector<TableFiles::Holder> UnwindTables::HoldersOf(const TableFile& file,
                                                        size_t most) const {
  std::vector<TableFiles::Holder> holders;
  for (const auto& [id, process] : processes_) {
    if (holders.size() == most) break;
    const auto at = std::ranges::find(process.files, &file);
    if (at == process.files.end() || id.pid == file.pid) continue;
    const auto index = static_cast<size_t>(at - process.files.begin());
    holders.push_back({.pid = id.pid, .mapping = process.mappings[index]});
  }
  return holders;
}

void UnwindTables::TellOfRuntime(const ksym::ProcessId& id,
                                 const TableList& process,
                                 const TableFile& file) const {
  if (!runtime_observer_.of_process || !file.runtimes.has_any()) return;
  for (size_t i = 0; i < process.files.size(); ++i) {
    if (process.files[i] != &file) continue;
    const auto load_bias = file.table.LoadBias(process.mappings[i]);
    if (!load_bias) continue;
    runtime_observer_.of_process(id, *load_bias, file.runtimes);
    return;
  }
}

// The same numbers may be those of another file elsewhere.
void UnwindTables::TellOfFile(const TableFile& file) const {
  if (runtime_observer_.of_file && file.is_for_all) {
    runtime_observer_.of_file(file);
  }
}

void UnwindTables::FindRuntimes(uint32_t pid,
                                const std::vector<ksym::Mapping>& mappings,
                                SteadyClock::time_point until) {
  if (!runtime_observer_.of_file) return;
  for (const ksym::Mapping& mapping : mappings) {
    if (now_() >= until) return;
    const TableFile* file = files_.FindRuntime(pid, mapping);
    if (file != nullptr) TellOfFile(*file);
  }
}

void UnwindTables::Expect(uint32_t pid,
                          const std::vector<ksym::Mapping>& mappings,
                          Expected expected) {
  files_.Expect(pid, mappings, expected);
}

void UnwindTables::NoteSample(const ksym::ProcessId& id,
                              SteadyClock::time_point time) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  process->second.state.NoteSample(time);
  if (process->second.state.is_evicted()) Acquire(id, process->second);
}

void UnwindTables::Forget(const ksym::ProcessId& id) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  // The list goes before the hold on the tables that it leads to.
  maps_->Withdraw(id);
  Release(process->second);
  stale_.erase(id);
  processes_.erase(process);
}

// Those that map a file whose table is to come.
void UnwindTables::FindStale() {
  for (const auto& [id, process] : processes_) {
    const bool is_stale =
        std::ranges::any_of(process.files, [](const TableFile* file) {
          return file != nullptr && file->state.is_awaited();
        });
    if (is_stale) stale_.insert(id);
  }
}

// Files that were opened may serve one mount namespace alone: whoever has
// another one there now takes it.
void UnwindTables::TakeParted() {
  const auto parted = files_.TakeParted();
  if (parted.empty()) return;
  for (auto& [id, process] : processes_) {
    const bool has_any = std::ranges::any_of(
        process.files,
        [&](const TableFile* file) { return parted.contains(file); });
    if (has_any) Acquire(id, process);
  }
}

// Runtimes are told of at once, and not with their tables: the sampler finds
// their frames in stacks that are copied, too.
void UnwindTables::TakeBuilt() {
  for (const TableFile* file : files_.TakeBuilt()) {
    TellOfFile(*file);
    for (auto& [id, process] : processes_) {
      if (std::ranges::find(process.files, file) == process.files.end()) {
        continue;
      }
      TellOfRuntime(id, process, *file);
      // The sampler looks for it where the list says that there is one, also if
      // this file's table has no room.
      process.state.Change();
      stale_.insert(id);
    }
  }
}

void UnwindTables::Build(SteadyClock::duration budget,
                         SteadyClock::time_point deadline) {
  const Times times{.until = std::min(now_() + budget, deadline),
                    .deadline = deadline};
  files_.BeginRound();
  makes_room_ = false;
  // Before lists are made: they then have the tables that came since.
  TakeBuilt();
  TakeParted();
  if (files_.TakeNewlyWanted()) FindStale();
  std::vector<Entry*> stale;
  stale.reserve(stale_.size());
  for (const auto& id : stale_) stale.push_back(&*processes_.find(id));
  // The time may end before all have a list: those that are sampled most gain
  // most by it.
  std::ranges::sort(stale, std::greater(), [](const Entry* entry) {
    return entry->second.state.samples();
  });
  for (Entry* entry : stale) {
    if (waits_for_room_ || now_() >= times.until) return;
    // It may have had to make room for one before it.
    if (!stale_.contains(entry->first)) continue;
    if (!BuildList(*entry, times)) return;
  }
}

// False: the others have to wait for room.
bool UnwindTables::BuildList(Entry& entry, const Times& times) {
  auto& [id, process] = entry;
  const bool is_done = BuildFiles(entry, times);
  if (waits_for_room_) return false;
  // The process itself may have gone to make room for its table.
  if (process.state.is_evicted()) return true;
  const Outlook outlook = OutlookOf(process);
  if (is_done) process.state.Settle(outlook.settled);
  if (process.state.IsDue(outlook.is_whole)) Publish(entry, outlook);
  // One that was refused comes back with RetryRefused(), not with every pass.
  if (outlook.is_whole || process.state.is_refused()) stale_.erase(id);
  return true;
}

// Places what is there and asks for the rest. False: time or room ended before
// all files were seen.
bool UnwindTables::BuildFiles(Entry& entry, const Times& times) {
  TableList& process = entry.second;
  for (size_t i = 0; i < process.files.size(); ++i) {
    const TableFile* file = process.files[i];
    if (file == nullptr) continue;
    meanwhile_();
    if (file->state.is_awaited() && !BuildFile(entry, i, times)) return false;
  }
  return true;
}

UnwindTables::Outlook UnwindTables::OutlookOf(const TableList& process) {
  Outlook outlook;
  for (const TableFile* file : process.files) {
    if (file == nullptr) continue;
    outlook.settled.Count(file->state);
    outlook.is_whole &= !file->state.is_awaited();
    outlook.has_any |= file->state.is_ready();
  }
  return outlook;
}

// One that is awaited: places it, gives it up, or asks for it. False: the
// rest of the list has to wait, for time or for room.
bool UnwindTables::BuildFile(Entry& entry, size_t i, const Times& times) {
  auto& [id, process] = entry;
  TableFile& file = *process.files[i];
  const auto now = now_();
  if (file.rows) {
    if (now >= times.until) return false;
    // Stacks through it are copied until its room is made.
    if (!files_.PrepareRoom(file)) return makes_room_ = true;
    if (Place(file)) process.state.Change();
    return !waits_for_room_ && !process.state.is_evicted();
  }
  if (file.state.has_failed()) {
    TableFiles::Close(file);
  } else if (IsReadyBefore(times.deadline, now, file.size)) {
    files_.AskThrough(id.pid, process.mappings[i],
                      std::max<uint64_t>(process.state.samples(), 1), file);
  }
  return true;
}

void UnwindTables::WaitForTable(SteadyClock::duration time) {
  files_.Wait(time);
  TakeBuilt();
}

bool UnwindTables::IsBuilding() const {
  return makes_room_ || files_.IsBuilding();
}

// True when it has a place now.
bool UnwindTables::Place(TableFile& file) {
  const bool is_placed = files_.Place(file);
  if (!placer_.refusal().empty()) Warn(placer_.refusal());
  if (is_placed) {
    ++statistics_.files;
    return true;
  }
  // Again, when what was freed can be used.
  waits_for_room_ = MakeRoom(file.rows->rows.size());
  if (waits_for_room_) return false;
  ++statistics_.files_refused;
  files_.RefuseRoom(file);
  return false;
}

std::optional<ksym::CodeAt> UnwindTables::CodeOf(uint32_t pid,
                                                 const ksym::Mapping& mapping) {
  TableFile* file = files_.FileOf(pid, mapping);
  ksym::CodeAt code = {.kind = ksym::CodeAt::Kind::kNoTable};
  if (file == nullptr) return code;
  files_.Touch(*file);
  files_.Want(*file);
  if (!file->rows && !file->state.has_failed()) {
    files_.AskThrough(pid, mapping, kWantedNow, *file);
  }
  if (files_.IsComing(*file)) return std::nullopt;
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
  for (TableFile* file : process->second.files) {
    if (file != nullptr && file->state.is_pending()) files_.Want(*file);
  }
}

void UnwindTables::Publish(Entry& entry, const Outlook& outlook) {
  auto& [id, process] = entry;
  // With nothing but what is to come the whole stack is copied anyway. A list
  // that is there is replaced all the same: it may say what is no longer so.
  if (!outlook.is_whole && !outlook.has_any && !process.state.is_published()) {
    return;
  }
  std::vector<unwind_mapping> list;
  bool has_runtime = false;
  uint32_t code_runtimes = 0;
  for (size_t i = 0; i < process.mappings.size(); ++i) {
    const TableFile* file = process.files[i];
    if (file != nullptr) {
      has_runtime |= file->runtimes.cpython.has_value();
      code_runtimes |= CodeRuntimesOf(file->runtimes);
    }
    if (file != nullptr && file->state.is_ready()) {
      AppendUnwindMappings(process.mappings[i], file->table, list);
    } else {
      const bool pending = file != nullptr && file->state.is_pending();
      AppendUnwindMappings(process.mappings[i],
                           pending ? NoTable::kYet : NoTable::kEver, list);
    }
  }
  const auto published = maps_->Publish(id, {.mappings = list,
                                             .has_runtime = has_runtime,
                                             .code_runtimes = code_runtimes});
  if (!published) Warn(published.error().message());
  if (!published) return RefuseList(id, process, 0);
  if (!*published) return RefuseList(id, process, list.size() + 1);
  const auto publication =
      process.state.Published(outlook.settled, outlook.is_whole, now_());
  statistics_.processes += publication.is_first ? 1 : 0;
  if (publication.delay) delays_.Add(*publication.delay);
}

// There is no room for the process's list, which has so many entries, or it
// could not be written (0).
void UnwindTables::RefuseList(const ksym::ProcessId& id, TableList& process,
                              size_t entries) {
  ++statistics_.processes_refused;
  const bool had_list = process.state.Refuse(now_());
  maps_->Withdraw(id);
  if (entries == 0 || entries > maps_->max_entries()) return;
  // Room that is freed now can be used after the next Recycle().
  if (!had_list && evicted_for_lists_ < kMaxEvicted && EvictProcess()) {
    ++evicted_for_lists_;
  }
  if (had_list || evicted_for_lists_ > 0) process.state.RetrySoon();
}

// Frees about that many slots, if it can; true when it freed any.
bool UnwindTables::MakeRoom(uint64_t slots) {
  if (slots > maps_->max_slots()) return false;
  uint64_t freed = 0;
  while (freed < slots) {
    // Tables that nobody maps first, then those of a process.
    const uint64_t more = files_.EvictUnused();
    if (more == 0 && !EvictProcess()) break;
    freed += more;
  }
  return freed > 0;
}

// Withdraws the process that was not sampled for longest, so that its files may
// go. False: all were sampled a moment ago.
bool UnwindTables::EvictProcess() {
  const auto before = now_() - TableListState::kKeepSampled;
  std::vector<RoomHolder> holders;
  holders.reserve(processes_.size());
  for (const TableList& process : processes_ | std::views::values) {
    holders.push_back({.can_go = process.state.CanBeEvicted(before),
                       .used = process.state.seen()});
  }
  const auto unseen = LongestUnused(holders, before);
  if (!unseen) return false;
  auto& [id, process] =
      *std::next(processes_.begin(), static_cast<ptrdiff_t>(*unseen));
  maps_->Withdraw(id);
  Release(process);
  process.state.Evict();
  stale_.erase(id);
  ++statistics_.processes_evicted;
  return true;
}

// By now those that had the room may not be sampled any more, and a file that
// could not be opened may be mapped by another process.
void UnwindTables::RetryRefused() {
  if (statistics_.files_refused + files_.counts().failed +
          statistics_.processes_refused ==
      0) {
    return;
  }
  const auto before = now_() - TableListState::kKeepSampled;
  bool again = false;
  for (auto& [id, process] : processes_) {
    if (process.state.Retry(before)) stale_.insert(id);
    for (TableFile* file : process.files) {
      if (file == nullptr) continue;
      again |= TableFiles::RetryRefused(*file, before, process.state.seen());
    }
  }
  if (again) FindStale();
}

void UnwindTables::Recycle() {
  maps_->Recycle();
  // What was freed can be taken now, so all that waited for room is tried
  // again.
  waits_for_room_ = false;
  evicted_for_lists_ = 0;
  RetryRefused();
  files_.DropRows();
  files_.Sweep();
}

UnwindStatistics UnwindTables::statistics() const {
  UnwindStatistics statistics = statistics_;
  statistics.rows_bytes = placer_.bytes();
  statistics.files_failed = files_.counts().failed;
  statistics.files_evicted = files_.counts().evicted;
  statistics.milliseconds =
      std::chrono::duration<double, std::milli>(files_.busy()).count();
  statistics.median_delay = delays_.Median();
  statistics.longest_delay = delays_.longest();
  return statistics;
}

void UnwindTables::Warn(const std::string& why) {
  if (std::exchange(warned_, true)) return;
  warnings_.Add("some stacks may be incomplete: " + why);
}

}  // namespace profd
