#include "daemon/capture/unwind_tables.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ksym/process/vdso.h"

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Files that are held open until their table is built.
constexpr size_t kMaxOpenFiles = 256;
// How long a table that nobody maps is kept for the next one who does.
constexpr seconds kKeepUnused(30);
// A process that was sampled since then keeps its tables.
constexpr seconds kKeepSampled(2);
// Of rows in this process, beside those that the sampler has.
constexpr uint64_t kMostRowBytes = 48 << 20;
constexpr uint64_t kMostCacheBytes = 512 << 20;
// Smaller pieces of a table would be too many.
constexpr size_t kFewestSlots = UNWIND_SHARD_SLOTS / 16;
// Upper ends of what building and placing one file takes.
constexpr milliseconds kFixedCost(15);
constexpr uint64_t kBytesPerMillisecond = 1 << 20;

UnwindTables::Clock::duration CostOf(uint64_t file_bytes) {
  return kFixedCost + milliseconds(file_bytes / kBytesPerMillisecond);
}

}  // namespace

UnwindTables::UnwindTables(UnwindMaps maps, const std::string& cache_directory)
    : maps_(std::move(maps)) {
  if (cache_directory.empty()) return;
  // Without it tables are built; that costs time only.
  auto cache = ksym::UnwindCache::Open(cache_directory, kMostCacheBytes);
  if (cache) cache_.emplace(std::move(*cache));
}

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
  process.stale = true;
}

void UnwindTables::Saw(const ksym::ProcessId& id) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  ++process->second.samples;
  process->second.seen = Clock::now();
  if (process->second.evicted) Acquire(id, process->second);
}

void UnwindTables::Forget(const ksym::ProcessId& id) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  maps_.Withdraw(id);
  Release(process->second);
  processes_.erase(process);
}

void UnwindTables::Close(File& file) {
  if (!file.fd.valid()) return;
  file.fd = ksym::UniqueFd();
  --open_files_;
}

// Null for memory that is no file's.
UnwindTables::File* UnwindTables::FileOf(uint32_t pid,
                                         const ksym::Mapping& mapping) {
  const bool is_vdso = mapping.path == "[vdso]";
  if (mapping.inode == 0 && !is_vdso) return nullptr;
  const Key key = is_vdso ? Key{}
                          : Key{.device_major = mapping.device_major,
                                .device_minor = mapping.device_minor,
                                .inode = mapping.inode};
  auto& file = files_[key];
  if (file && file->users == 0 && !is_vdso && file->checked != round_) {
    file->pid = pid;
    file->mapping = mapping;
    file->checked = round_;
    // An inode that nobody mapped for a while may be another file's by now.
    if (!IsUnchanged(*file)) {
      DropTable(*file);
      Close(*file);
      file.reset();
    }
  }
  if (!file) {
    file = std::make_unique<File>();
    file->pid = pid;
    file->mapping = mapping;
    file->checked = round_;
    if (!is_vdso && open_files_ < kMaxOpenFiles) Open(*file);
  }
  return file.get();
}

ksym::Result<ksym::OpenedFile> UnwindTables::Find(const File& file) {
  auto opened = ksym::OpenMappedFile(file.pid, file.mapping);
  // Of a process that is gone the file may still be where it was.
  if (!opened && file.mapping.inode != 0 &&
      opened.error().code() == ksym::ErrorCode::kNotFound) {
    return ksym::OpenHostFile(file.mapping);
  }
  return opened;
}

bool UnwindTables::IsUnchanged(const File& file) const {
  const auto opened = Find(file);
  return opened && opened->size == file.size &&
         opened->mtime_ns == file.mtime_ns;
}

void UnwindTables::Open(File& file) {
  auto opened = Find(file);
  if (!opened) return;
  file.fd = std::move(opened->fd);
  file.size = opened->size;
  file.mtime_ns = opened->mtime_ns;
  ++open_files_;
}

void UnwindTables::Release(Process& process) {
  for (File* file : process.files) {
    if (file == nullptr) continue;
    if (--file->users == 0) file->used = Clock::now();
  }
  process.files.clear();
}

UnwindTables::Process* UnwindTables::MostWanted(const ksym::ProcessId** id) {
  Process* best = nullptr;
  for (auto& [candidate_id, candidate] : processes_) {
    if (!candidate.stale) continue;
    if (best != nullptr && candidate.samples <= best->samples) continue;
    best = &candidate;
    *id = &candidate_id;
  }
  return best;
}

void UnwindTables::Build(Clock::duration budget, Clock::time_point deadline) {
  const auto begin = Clock::now();
  ++round_;
  const Times times = {.until = begin + budget, .deadline = deadline};
  const ksym::ProcessId* id = nullptr;
  while (!waits_for_room_ && Clock::now() < std::min(times.until, deadline)) {
    Process* process = MostWanted(&id);
    if (process == nullptr || !BuildFiles(*process, times)) break;
    Publish(*id, *process);
  }
  statistics_.milliseconds +=
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// False when there was not the time, or not the room.
bool UnwindTables::BuildFiles(Process& process, const Times& times) {
  for (File* file : process.files) {
    if (file == nullptr || file->state != File::State::kPending) continue;
    const auto now = Clock::now();
    if (now > times.until || now + CostOf(file->size) > times.deadline) {
      return false;
    }
    BuildFile(*file);
    if (waits_for_room_) return false;
  }
  return true;
}

// False when the file cannot have a table.
bool UnwindTables::LoadRows(File& file) {
  if (file.rows) return true;
  const bool is_vdso = file.mapping.path == "[vdso]";
  if (!is_vdso && !file.fd.valid()) Open(file);
  const auto source =
      is_vdso ? ksym::ByteSource::OfMemory(ksym::OwnVdsoImage())
              : ksym::ByteSource::OfFile(ksym::UniqueFd(::dup(file.fd.get())),
                                         file.size);
  const auto built = BuildRows(source, file);
  Close(file);
  return built.has_value();
}

ksym::Status UnwindTables::BuildRows(const ksym::ByteSource& source,
                                     File& file) {
  const auto image = ksym::ElfImage::Parse(source);
  if (!image) return ksym::Fail(image.error());
  auto table = cache_ ? cache_->LoadOrBuild(source, *image)
                      : ksym::BuildUnwindTable(source, *image);
  if (!table) return ksym::Fail(std::move(table.error()));
  file.rows = std::move(*table);
  file.table.base = file.rows->base;
  file.table.code.clear();
  std::ranges::copy_if(image->segments(), std::back_inserter(file.table.code),
                       &ksym::ElfSegment::executable);
  return {};
}

void UnwindTables::BuildFile(File& file) {
  if (!LoadRows(file)) {
    ++statistics_.files_failed;
    file.state = File::State::kNone;
  } else if (!Place(file)) {
    // Again, when what was freed can be used.
    waits_for_room_ = MakeRoom(file.rows ? file.rows->rows.size() : 0);
    if (waits_for_room_) return;
    ++statistics_.files_refused;
    file.state = File::State::kRefused;
    file.refused = Clock::now();
  }
}

// False when there is no room; then nothing of it has a place.
bool UnwindTables::Place(File& file) {
  if (!PlacePieces(file, UNWIND_SHARD_SLOTS, 0)) {
    DropTable(file);
    return false;
  }
  ++statistics_.files;
  file.state = File::State::kReady;
  return true;
}

// The table from `begin` on.
bool UnwindTables::PlacePieces(File& file, size_t max_slots, uint64_t begin) {
  if (!file.rows) return false;
  const auto pieces =
      CutIntoPieces(file.rows->rows, file.rows->size, max_slots, begin);
  // All but the last one fill a shard.
  if (max_slots == UNWIND_SHARD_SLOTS && pieces.size() > 2) {
    maps_.AddShards(pieces.size() - 1);
  }
  for (const UnwindPiece& piece : pieces) {
    auto added = maps_.AddSlots(piece.slots);
    if (!added) Warn(added.error());
    const auto place = std::move(added).value_or(std::nullopt);
    if (!place) {
      // There may be room between other tables.
      return max_slots > kFewestSlots &&
             PlacePieces(file, max_slots / 4, piece.begin);
    }
    statistics_.rows_bytes += piece.slots.size() * sizeof(uint64_t);
    file.table.pieces.push_back({.begin = piece.begin,
                                 .end = piece.end,
                                 .rows_at = piece.rows_at,
                                 .place = *place});
  }
  return true;
}

ksym::CodeAt UnwindTables::CodeOf(uint32_t pid, const ksym::Mapping& mapping) {
  File* file = FileOf(pid, mapping);
  ksym::CodeAt code = {.kind = ksym::CodeAt::Kind::kNoTable};
  if (file == nullptr || file->state == File::State::kNone) return code;
  file->used = Clock::now();
  if (!LoadRows(*file)) {
    ++statistics_.files_failed;
    file->state = File::State::kNone;
    return code;
  }
  const auto load_bias = file->table.LoadBias(mapping);
  if (!load_bias || !file->rows) return code;
  return {.kind = ksym::CodeAt::Kind::kTable,
          .table = &*file->rows,
          .load_bias = *load_bias};
}

// The sampler has its own copy: here they serve stacks that were copied.
void UnwindTables::DropRows() {
  uint64_t bytes = 0;
  for (const auto& [key, file] : files_) bytes += file->RowBytes();
  for (const auto& [key, file] : files_) {
    if (bytes <= kMostRowBytes) return;
    bytes -= file->RowBytes();
    file->rows.reset();
  }
}

uint64_t UnwindTables::File::RowBytes() const {
  return rows ? rows->rows.size() * sizeof(ksym::UnwindRow) : 0;
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

// Frees about that many slots, if it can; true when it freed any.
bool UnwindTables::MakeRoom(uint64_t slots) {
  if (slots > maps_.max_slots()) return false;
  uint64_t freed = 0;
  while (freed < slots) {
    const uint64_t more = EvictFile();
    if (more == 0 && !EvictProcess()) break;
    freed += more;
  }
  return freed > 0;
}

// Drops the table that nobody has mapped for longest; 0: there is none.
uint64_t UnwindTables::EvictFile() {
  const auto can_go = [](const File& file) {
    return file.users == 0 && file.state == File::State::kReady;
  };
  const auto longest_unused =
      std::ranges::min_element(files_, {}, [&](const auto& entry) {
        return std::pair(!can_go(*entry.second), entry.second->used);
      });
  if (longest_unused == files_.end() || !can_go(*longest_unused->second)) {
    return 0;
  }
  const uint64_t slots = DropTable(*longest_unused->second);
  Close(*longest_unused->second);
  files_.erase(longest_unused);
  ++statistics_.files_evicted;
  return slots;
}

// Withdraws the process that was not sampled for longest, so that its files may
// go. False: all were sampled a moment ago.
bool UnwindTables::EvictProcess() {
  const auto longest_unseen =
      std::ranges::min_element(processes_, {}, [](const auto& entry) {
        return std::pair(!entry.second.published, entry.second.seen);
      });
  if (longest_unseen == processes_.end() || !longest_unseen->second.published ||
      longest_unseen->second.seen + kKeepSampled > Clock::now()) {
    return false;
  }
  Process& process = longest_unseen->second;
  maps_.Withdraw(longest_unseen->first);
  Release(process);
  process.published = false;
  process.evicted = true;
  process.stale = false;
  ++statistics_.processes_evicted;
  return true;
}

void UnwindTables::Publish(const ksym::ProcessId& id, Process& process) {
  std::vector<unwind_mapping> list;
  for (size_t i = 0; i < process.mappings.size(); ++i) {
    const File* file = process.files[i];
    const bool ready = file != nullptr && file->state == File::State::kReady;
    AppendUnwindMappings(process.mappings[i], ready ? &file->table : nullptr,
                         list);
  }
  const auto published = maps_.Publish(id, list);
  if (!published) Warn(published.error());
  process.stale = false;
  process.samples = 0;
  if (published && *published) {
    statistics_.processes += process.published ? 0 : 1;
    process.published = true;
  } else {
    ++statistics_.processes_refused;
    // Half of the truth would be a wrong stack.
    maps_.Withdraw(id);
  }
}

// By now those that had the room may not be sampled any more.
void UnwindTables::RetryRefused() {
  if (statistics_.files_refused == 0) return;
  const auto before = Clock::now() - kKeepSampled;
  bool again = false;
  for (const auto& [id, process] : processes_) {
    for (File* file : process.files) {
      if (file == nullptr || file->state != File::State::kRefused ||
          file->refused > before || process.seen <= file->refused) {
        continue;
      }
      file->state = File::State::kPending;
      again = true;
    }
  }
  if (!again) return;
  for (auto& [id, process] : processes_) {
    process.stale |= std::ranges::any_of(process.files, [](const File* file) {
      return file != nullptr && file->state == File::State::kPending;
    });
  }
}

void UnwindTables::Recycle() {
  maps_.Recycle();
  waits_for_room_ = false;
  RetryRefused();
  DropRows();
  const auto now = Clock::now();
  for (auto file = files_.begin(); file != files_.end();) {
    if (file->second->users > 0 || file->second->used + kKeepUnused > now) {
      ++file;
      continue;
    }
    DropTable(*file->second);
    Close(*file->second);
    file = files_.erase(file);
  }
}

void UnwindTables::Warn(const ksym::Error& error) {
  if (std::exchange(warned_, true)) return;
  warning_ = "some stacks may be incomplete: " + error.message();
}

std::optional<std::string> UnwindTables::TakeWarning() {
  return std::exchange(warning_, std::nullopt);
}

}  // namespace profd
