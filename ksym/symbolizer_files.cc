#include "ksym/symbolizer_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "ksym/base/bounded_name.h"
#include "ksym/demangle/demangle.h"
#include "ksym/program_files.h"

namespace ksym {
namespace {

// After so many processes through which a file could not be opened it is not
// tried again.
constexpr uint32_t kMaxFailures = 16;

// A node of an unordered_map<uint32_t, std::string_view> and its bucket.
constexpr size_t kNameEntryBytes = 48;

Unresolved ReasonOfOpening(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kPermission:
      return Unresolved::kNoPermission;
    case ErrorCode::kInvalid:
      return Unresolved::kFileChanged;
    case ErrorCode::kUnsupported:
      return Unresolved::kMalformed;
    default:
      return error.sys_errno() == EMFILE || error.sys_errno() == ENFILE
                 ? Unresolved::kTooLarge
                 : Unresolved::kGone;
  }
}

Unresolved ReasonOfLoading(const Error& error) {
  return error.code() == ErrorCode::kLimit ? Unresolved::kTooLarge
                                           : Unresolved::kMalformed;
}

int DescriptorOf(const SymbolFile& file) {
  return file.symbols ? file.symbols->fd() : file.opened.fd.get();
}

// Whether the open file is still as it was when it was opened. One fstat.
bool IsUnchanged(const SymbolFile& file) {
  const int fd = DescriptorOf(file);
  if (fd < 0) return true;  // an image in memory
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return false;
  return static_cast<uint64_t>(status.st_size) == file.opened.size &&
         MtimeNs(status) == file.opened.mtime_ns;
}

// For a warning: the path and who is to be asked.
std::string DescribeFile(const std::string& path, int fd) {
  struct stat status = {};
  std::string text = path;
  if (fd >= 0 && ::fstat(fd, &status) == 0) {
    text += " (of user " + std::to_string(status.st_uid) + ")";
  }
  return text;
}

}  // namespace

size_t FileKeyHash::operator()(const FileKey& key) const {
  constexpr uint64_t kMix = 0x9e3779b97f4a7c15;
  const uint64_t device = (uint64_t{key.device_major} << 32) | key.device_minor;
  const uint64_t text =
      key.path.empty() ? 0 : std::hash<std::string_view>()(key.path);
  return static_cast<size_t>((key.inode * kMix ^ device) * kMix ^ text);
}

SymbolFile& SymbolFiles::Touch(const Mapping& mapping) {
  FileKey key{mapping.device_major, mapping.device_minor, mapping.inode, {}};
  std::string room;
  if (mapping.inode == 0 || mapping.device_major == 0) {
    key.path = BoundPath(mapping.path, room);
  }
  const auto found = index_.find(key);
  if (found != index_.end()) {
    files_.splice(files_.begin(), files_, found->second);
    return found->second->second;
  }
  if (files_.size() >= options_.max_files) return Refused();
  if (!key.path.empty()) key.path = pool_.Intern(key.path).value_or("");
  files_.emplace_front(key, SymbolFile());
  index_.emplace(key, files_.begin());
  ++statistics_.files_known;
  return files_.front().second;
}

SymbolFile& SymbolFiles::Refused() {
  if (!refused_) {
    refused_.emplace();
    refused_->state = SymbolFile::State::kFailed;
    refused_->reason = Unresolved::kTooLarge;
    refused_->failures = kMaxFailures;
    warnings_.Add("more than " + std::to_string(options_.max_files) +
                  " files are mapped: others are not used");
  }
  return *refused_;
}

void SymbolFiles::Open(const ProcessId& process, const Mapping& mapping,
                       SymbolFile& file) {
  const auto open = [&] {
    if (options_.program_files != nullptr) {
      return options_.program_files->Open(mapping);
    }
    return options_.files == SymbolizerOptions::Files::kOfProcess
               ? HoldMappedOrHostFile(process.pid, mapping)
               : HoldHostFile(mapping);
  };
  auto opened = open();
  if (!opened) return FailToOpen(process, opened.error(), file);
  file.opened = std::move(*opened);
  file.state = SymbolFile::State::kPinned;
  file.reason = Unresolved::kNone;
  ++open_files_;
  EnforceDescriptors();
}

void SymbolFiles::FailToOpen(const ProcessId& process, const Error& error,
                             SymbolFile& file) {
  file.state = SymbolFile::State::kFailed;
  file.reason = ReasonOfOpening(error);
  file.tried = process;
  if (file.failures++ == 0) ++statistics_.files_failed;
}

// Debug files are looked for where the stripped file is: in the process's own
// root as long as it lives. Those that this machine keeps by build-id serve a
// container's files as well; no other path that a process's file names is
// opened outside its root.
DebugFileFinder SymbolFiles::FinderOf(const ProcessId& process,
                                      const std::string& file_path) const {
  if (options_.program_files != nullptr) {
    return {file_path,
            [files = options_.program_files](const std::string& path) {
              return files->OpenDebugFile(path);
            },
            fetch_, checksums_};
  }
  const auto open = [files = options_.files, pid = process.pid](
                        const std::string& path) -> Result<ByteSource> {
    Result<OpenedFile> opened = Fail(ErrorCode::kNotFound, path);
    if (files == SymbolizerOptions::Files::kOfProcess) {
      opened = OpenFileOfProcess(pid, path);
    }
    const bool host = files == SymbolizerOptions::Files::kOfHost ||
                      path.starts_with(kBuildIdFolder);
    if (!opened && host) opened = OpenFileOfHost(path);
    if (!opened) return Fail(std::move(opened.error()));
    return ByteSource::OfFile(std::move(opened->fd), opened->size);
  };
  return {file_path, open, fetch_, checksums_};
}

void SymbolFiles::Read(const ProcessId& process, const std::string& path,
                       SymbolFile& file) {
  file.read_for = process;
  if (file.path != path) file.path = pool_.Intern(path).value_or("");
  file.fetch_asked = static_cast<bool>(fetch_);
  const auto opened = OpenHeld(file.opened);
  if (!opened) {
    file.opened.fd.Reset();
    --open_files_;
    return FailToOpen(process, opened.error(), file);
  }
  const std::string shown = DescribeFile(path, file.opened.fd.get());
  const uint64_t refused = checksums_->refused();
  auto symbols = ElfSymbols::Load(
      ByteSource::OfFile(std::move(file.opened.fd), file.opened.size),
      FinderOf(process, path), options_.table_room);
  if (!symbols && symbols.error().code() == ErrorCode::kLimit) {
    warnings_.Add(shown + " not used: " + symbols.error().message());
  } else if (checksums_->refused() != refused) {
    warnings_.Add("debug file of " + shown +
                  " not used: it is too large to be checked, or many others "
                  "were");
  }
  const std::string& mapped = file.opened.mapped_build_id;
  const bool is_other =
      symbols && !mapped.empty() && symbols->build_id() != ToHex(mapped);
  if (!symbols || is_other) {
    file.state = SymbolFile::State::kFailed;
    file.reason =
        is_other ? Unresolved::kFileChanged : ReasonOfLoading(symbols.error());
    file.failures = kMaxFailures;  // another process has the same file
    --open_files_;
    ++statistics_.files_failed;
    return;
  }
  file.symbols = std::move(*symbols);
  file.state = SymbolFile::State::kLoaded;
  open_files_ += file.symbols->holds_debug_file() ? 1 : 0;
  file.build_id = pool_.Intern(file.symbols->build_id()).value_or("");
  statistics_.symbols += file.symbols->symbol_count();
  ++statistics_.files_loaded;
  Charge(file, file.symbols->memory_bytes());
}

void SymbolFiles::Charge(SymbolFile& file, size_t bytes) {
  file.charged_bytes += bytes;
  statistics_.cache_bytes += bytes;
  EnforceBytes();
}

// A file written over in place keeps its numbers. What was read of it before
// describes a program that is not there any more.
void SymbolFiles::CloseIfChanged(SymbolFile& file) {
  const bool open = file.state == SymbolFile::State::kPinned ||
                    file.state == SymbolFile::State::kLoaded;
  if (!open || IsUnchanged(file)) return;
  Drop(file);
  file.opened.fd.Reset();
  file.state = SymbolFile::State::kClosed;
  --open_files_;
}

void SymbolFiles::Pin(const ProcessId& process, const Mapping& mapping) {
  SymbolFile& file = Touch(mapping);
  CloseIfChanged(file);
  const bool retry = file.state == SymbolFile::State::kFailed &&
                     file.failures < kMaxFailures && file.tried != process;
  if (retry || file.state == SymbolFile::State::kClosed) {
    Open(process, mapping, file);
  }
}

SymbolFile& SymbolFiles::Load(const ProcessId& process,
                              const Mapping& mapping) {
  SymbolFile& file = Touch(mapping);
  if (file.state == SymbolFile::State::kClosed) Open(process, mapping, file);
  if (file.state == SymbolFile::State::kPinned) {
    Read(process, mapping.path, file);
    if (!file.build_id.empty()) by_build_id_[file.build_id] = files_.begin();
  }
  return file;
}

SymbolFile* SymbolFiles::LoadAgain(std::string_view build_id) {
  const auto found = by_build_id_.find(build_id);
  if (found == by_build_id_.end()) return nullptr;
  files_.splice(files_.begin(), files_, found->second);
  SymbolFile& file = files_.front().second;
  CloseIfChanged(file);
  if (file.symbols && !file.symbols->has_full_table() && fetch_ &&
      !file.fetch_asked) {
    Drop(file);
  }
  if (file.state == SymbolFile::State::kPinned) {
    Read(file.read_for, std::string(file.path), file);
  }
  // What has been written in its place is not the file that was asked for.
  return file.build_id == build_id ? &file : nullptr;
}

Result<Symbolizer::ProgramFile> SymbolFiles::OpenAgain(
    std::string_view build_id) const {
  const auto found = by_build_id_.find(build_id);
  if (found == by_build_id_.end()) {
    return Fail(ErrorCode::kNotFound, "no file of that build-id is known");
  }
  const SymbolFile& file = found->second->second;
  if (DescriptorOf(file) < 0 || !IsUnchanged(file)) {
    return Fail(ErrorCode::kNotFound,
                std::string(file.path) + ": not open any more, or changed");
  }
  OpenedFile copy;
  copy.fd = UniqueFd(::fcntl(DescriptorOf(file), F_DUPFD_CLOEXEC, 0));
  if (!copy.fd.valid()) return FailErrno(errno, std::string(file.path));
  copy.is_held = file.opened.is_held;
  auto opened = OpenHeld(copy);
  if (!opened) {
    return Fail(std::move(opened.error()).WithContext(file.path));
  }
  return Symbolizer::ProgramFile{
      ByteSource::OfFile(std::move(copy.fd), file.opened.size),
      FinderOf(file.read_for, std::string(file.path))};
}

SymbolFile SymbolFiles::LoadImage(std::string image) {
  SymbolFile file;
  auto symbols = ElfSymbols::Load(ByteSource::OfMemory(std::move(image)));
  if (!symbols) {
    file.state = SymbolFile::State::kFailed;
    file.reason = ReasonOfLoading(symbols.error());
    return file;
  }
  file.symbols = std::move(*symbols);
  file.state = SymbolFile::State::kLoaded;
  file.build_id = pool_.Intern(file.symbols->build_id()).value_or("");
  return file;
}

std::optional<std::string_view> SymbolFiles::NameOf(
    SymbolFile& file, const SymbolTable::Match& match, Unresolved& reason) {
  const auto found = file.names.find(match.index);
  if (found != file.names.end()) return found->second;
  if (!file.symbols || !IsUnchanged(file)) {
    reason = Unresolved::kFileChanged;
    return std::nullopt;
  }
  const auto name = file.symbols->ReadName(match);
  if (!name) {
    reason = Unresolved::kMalformed;
    return std::nullopt;
  }
  // Only a full table has versions, so a function would have two names.
  const std::string_view plain = WithoutVersion(*name);
  const bool demangle = options_.demangle == SymbolizerOptions::Demangle::kOn;
  std::string room;
  const auto kept = pool_.Intern(
      BoundName(demangle ? Demangle(plain) : std::string(plain), room));
  if (!kept) {
    reason = Unresolved::kTooLarge;
    return std::nullopt;
  }
  file.names.emplace(match.index, *kept);
  if (file.charged_bytes > 0) Charge(file, kNameEntryBytes);
  return kept;
}

void SymbolFiles::Resolve(SymbolFile& file, FileOffset offset,
                          UserSymbol& symbol) {
  if (!file.symbols) {
    symbol.reason = file.reason;
    return;
  }
  symbol.build_id = file.build_id;
  const auto match = file.symbols->Find(offset);
  if (!match) {
    symbol.reason = file.symbols->symbol_count() == 0 ? Unresolved::kNoSymbols
                                                      : Unresolved::kNoSymbol;
    return;
  }
  const auto name = NameOf(file, *match, symbol.reason);
  if (!name) return;
  symbol.name = *name;
  symbol.symbol_offset = match->address - match->start;
}

// Forgets what was read; the descriptor goes back to `opened`.
void SymbolFiles::Drop(SymbolFile& file) {
  if (!file.symbols) return;
  statistics_.cache_bytes -= file.charged_bytes;
  statistics_.symbols -= file.symbols->symbol_count();
  file.charged_bytes = 0;
  open_files_ -= file.symbols->holds_debug_file() ? 1 : 0;
  file.opened.fd = std::move(*file.symbols).TakeFd();
  file.symbols.reset();
  file.names = {};
  file.state = SymbolFile::State::kPinned;
}

void SymbolFiles::EnforceDescriptors() {
  const size_t limit = std::max<size_t>(options_.max_open_files, 1);
  for (auto it = files_.end(); open_files_ > limit && it != files_.begin();) {
    SymbolFile& file = (--it)->second;
    Drop(file);
    if (file.state != SymbolFile::State::kPinned) continue;
    file.opened.fd.Reset();
    file.state = SymbolFile::State::kClosed;
    --open_files_;
    ++statistics_.files_closed;
  }
}

void SymbolFiles::EnforceBytes() {
  // The most recently used one is in use.
  for (auto it = files_.end(); statistics_.cache_bytes > options_.cache_bytes &&
                               it != std::next(files_.begin());) {
    SymbolFile& file = (--it)->second;
    if (!file.symbols) continue;
    Drop(file);
    ++statistics_.files_evicted;
  }
}

}  // namespace ksym
