#include "daemon/capture/unwind_tables.h"

#include <algorithm>
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
// Upper ends of what building and placing one file takes.
constexpr milliseconds kFixedCost(15);
constexpr uint64_t kBytesPerMillisecond = 1 << 20;

UnwindTables::Clock::duration CostOf(uint64_t file_bytes) {
  return kFixedCost + milliseconds(file_bytes / kBytesPerMillisecond);
}

}  // namespace

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
  if (file && file->users == 0 && !is_vdso) {
    file->pid = pid;
    file->mapping = mapping;
    // An inode that nobody mapped for a while may be another file's by now.
    if (!IsUnchanged(*file)) {
      DropTable(*file);
      file.reset();
    }
  }
  if (!file) {
    file = std::make_unique<File>();
    file->pid = pid;
    file->mapping = mapping;
    if (!is_vdso && open_files_ < kMaxOpenFiles) Open(*file);
  }
  return file.get();
}

ksym::Result<ksym::OpenedFile> UnwindTables::Find(const File& file) {
  return ksym::OpenMappedFile(file.pid, file.mapping);
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

void UnwindTables::BuildFile(File& file) {
  const bool is_vdso = file.mapping.path == "[vdso]";
  if (!is_vdso && !file.fd.valid()) Open(file);
  const bool was_open = file.fd.valid();
  auto source = is_vdso
                    ? ksym::ByteSource::OfMemory(ksym::OwnVdsoImage())
                    : ksym::ByteSource::OfFile(std::move(file.fd), file.size);
  auto built = BuildUnwindFile(source);
  if (!built) {
    ++statistics_.files_failed;
    file.state = File::State::kNone;
  } else if (!Place(std::move(*built), file) && MakeRoom()) {
    // Again, when what was freed can be used.
    waits_for_room_ = true;
    file.fd = std::move(source).TakeFd();
    return;
  } else if (file.state == File::State::kPending) {
    ++statistics_.files_refused;
    file.state = File::State::kNone;
  }
  if (was_open) --open_files_;
}

// False when there is no room; then nothing of it has a place.
bool UnwindTables::Place(BuiltUnwindFile built, File& file) {
  file.table = std::move(built.file);
  for (const UnwindPiece& piece : built.pieces) {
    auto added = maps_.AddSlots(piece.slots);
    if (!added) Warn(added.error());
    const auto place = std::move(added).value_or(std::nullopt);
    if (!place) {
      DropTable(file);
      return false;
    }
    statistics_.rows_bytes += piece.slots.size() * sizeof(uint64_t);
    file.table.pieces.push_back({.begin = piece.begin,
                                 .end = piece.end,
                                 .rows_at = piece.rows_at,
                                 .place = *place});
  }
  ++statistics_.files;
  file.state = File::State::kReady;
  return true;
}

void UnwindTables::DropTable(File& file) {
  for (const UnwindFile::Piece& piece : file.table.pieces) {
    maps_.FreeSlots(piece.place);
    statistics_.rows_bytes -= piece.place.count * sizeof(uint64_t);
  }
  file.table.pieces.clear();
  if (file.fd.valid()) {
    file.fd = ksym::UniqueFd();
    --open_files_;
  }
}

// True when something was freed.
bool UnwindTables::MakeRoom() {
  const auto longest_unused =
      std::ranges::min_element(files_, {}, [](const auto& entry) {
        const File& file = *entry.second;
        const bool can_go =
            file.users == 0 && file.state == File::State::kReady;
        return std::pair(!can_go, file.used);
      });
  if (longest_unused != files_.end() && longest_unused->second->users == 0 &&
      longest_unused->second->state == File::State::kReady) {
    DropTable(*longest_unused->second);
    files_.erase(longest_unused);
    ++statistics_.files_evicted;
    return true;
  }
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

void UnwindTables::Recycle() {
  maps_.Recycle();
  waits_for_room_ = false;
  const auto now = Clock::now();
  for (auto file = files_.begin(); file != files_.end();) {
    if (file->second->users > 0 || file->second->used + kKeepUnused > now) {
      ++file;
      continue;
    }
    DropTable(*file->second);
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
