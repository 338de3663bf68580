// SPDX-License-Identifier: Apache-2.0
#include "ksym/symbolizer_files.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "ksym/base/bounded_name.h"
#include "ksym/demangle/demangle.h"
#include "ksym/file_reasons.h"
#include "ksym/program_files.h"

namespace ksym {
namespace {

using Clock = std::chrono::steady_clock;

// After so many processes through which a file could not be opened it is not
// tried again.
constexpr uint32_t kMaxFailures = 16;

// Mappings that are remembered to lead to another file than the same numbers do
// for others; some 100 bytes each.
constexpr size_t kMaxOwnFiles = size_t{1} << 14;
// A file that did not answer is asked for again, and one that did is looked at
// again, after that time: either may take a moment.
constexpr std::chrono::seconds kRetryAfter(10);
constexpr std::chrono::seconds kLookAgainAfter(1);

// A node of an unordered_map<uint32_t, std::string_view> and its bucket.
constexpr size_t kNameEntryBytes = 48;

// For a warning: the path and who is to be asked.
std::string DescribeFile(const std::string& path, const FileOwner& owner) {
  return path + " (of user " + std::to_string(owner.user) + ")";
}

FileKey NumbersOf(const Mapping& mapping) {
  return {.device_major = mapping.device_major,
          .device_minor = mapping.device_minor,
          .inode = mapping.inode,
          .path = {}};
}

}  // namespace

SymbolFile& SymbolFiles::Touch(FileKey key) {
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

SymbolFile& SymbolFiles::TouchShared(const Mapping& mapping) {
  FileKey key = NumbersOf(mapping);
  std::string room;
  if (mapping.inode == 0 || mapping.device_major == 0) {
    key.path = BoundPath(mapping.path, room);
  }
  return Touch(key);
}

// The one that was opened, for this process's mapping.
SymbolFile& SymbolFiles::TouchOwn(const ProcessId& process,
                                  const Mapping& mapping,
                                  const OpenedFile& opened) {
  TouchShared(mapping);
  FileKey own = files_.front().first;
  own.process = process;
  SymbolFile& file = Touch({.device_major = major(opened.owner.device),
                            .device_minor = minor(opened.owner.device),
                            .inode = opened.inode,
                            .path = {},
                            .is_of_descriptor = true});
  if (IsRefused(file)) return file;
  if (own_.size() >= kMaxOwnFiles) own_.clear();
  own_.insert_or_assign(own, files_.begin());
  return file;
}

// Everybody's where that is known, else the process's own, else everybody's
// that is to be opened.
SymbolFile& SymbolFiles::FileOf(const ProcessId& process,
                                const Mapping& mapping) {
  SymbolFile& shared = TouchShared(mapping);
  if (own_.empty() || shared.IsOpen() || IsRefused(shared)) return shared;
  FileKey key = files_.front().first;
  key.process = process;
  const auto own = own_.find(key);
  if (own == own_.end()) return shared;
  files_.splice(files_.begin(), files_, own->second);
  return own->second->second;
}

// A path leads where the maker of the process's root has it lead, which may be
// to a file that has the numbers of somebody else's. That one speaks for those
// who are led to it; a file speaks for everybody who maps these numbers if they
// leave no choice, or if no user could have made it.
bool SymbolFiles::SpeaksForAll(const OpenedFile& opened) const {
  const bool is_of_process =
      options_.program_files == nullptr &&
      options_.files == SymbolizerOptions::Files::kOfProcess;
  return !is_of_process || opened.is_only_one ||
         IsOfMachine(opened.owner, ::geteuid());
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

// The one that was opened, which may be another than `file`.
SymbolFile& SymbolFiles::Open(const ProcessId& process, const Mapping& mapping,
                              SymbolFile& file) {
  const auto open = [&] {
    if (options_.program_files != nullptr) {
      return options_.program_files->Open(mapping);
    }
    return options_.files == SymbolizerOptions::Files::kOfProcess
               ? options_.opener->Hold(process.pid, mapping)
               : HoldHostFile(mapping);
  };
  auto opened = open();
  if (!opened) {
    FailToOpen(process, opened.error(), file);
    return file;
  }
  // The file's owner shows only once it is open; until then `file` stands for
  // the numbers.
  SymbolFile& home = SpeaksForAll(*opened)
                         ? TouchShared(mapping)
                         : TouchOwn(process, mapping, *opened);
  CloseIfChanged(home);
  const bool is_given_up =
      home.state == SymbolFile::State::kFailed && home.failures >= kMaxFailures;
  if (is_given_up || home.IsOpen()) return home;
  home.owner = opened->owner;
  home.opened = std::move(*opened);
  home.state = SymbolFile::State::kPinned;
  home.reason = Unresolved::kNone;
  // After it is counted, and first in the list, so that it is not what is
  // closed for it.
  ++open_files_;
  EnforceDescriptors();
  return home;
}

void SymbolFiles::FailToOpen(const ProcessId& process, const Error& error,
                             SymbolFile& file) {
  file.state = SymbolFile::State::kFailed;
  file.reason = ReasonOfOpening(error);
  file.tried = process;
  file.looked = Clock::now();
  if (file.failures++ == 0) ++statistics_.files_failed;
}

void SymbolFiles::Read(const ProcessId& process, const std::string& path,
                       SymbolFile& file) {
  file.read_for = process;
  if (file.path != path) file.path = pool_.Intern(path).value_or("");
  // Whatever comes of it: LoadAgain() reads a file again for a source once.
  file.fetch_asked = static_cast<bool>(fetch_);
  const auto opened = options_.opener->Open(file.opened);
  if (!opened) {
    file.opened = {};
    --open_files_;
    return FailToOpen(process, opened.error(), file);
  }
  const std::string shown = DescribeFile(path, file.owner);
  // Compared below: this file's debug file was refused if the count rises.
  const uint64_t refused = checksums_->refused();
  std::string untrusted;
  auto symbols = ElfSymbols::Load(
      ByteSource::OfFile(
          std::move(file.opened.fd), file.opened.size,
          {.owner = OwnerOfCopy(file.opened), .room = file.opened.room}),
      WatchRefusals(FinderOf(file), untrusted), options_.table_room);
  if (!symbols && symbols.error().code() == ErrorCode::kLimit) {
    warnings_.Add(shown + " not used: " + symbols.error().message());
  } else if (checksums_->refused() != refused) {
    warnings_.Add("debug file of " + shown +
                  " not used: it is too large to be checked, or many others "
                  "were");
  } else if (symbols && !symbols->has_full_table() && !untrusted.empty()) {
    warnings_.Add("debug file of " + shown + " not used: " + untrusted);
  }
  const std::string& mapped = file.opened.mapped_build_id;
  const bool is_other =
      // An overlay numbers the files of its layers alike, so the inode alone
      // may be another file's.
      symbols && !mapped.empty() && symbols->build_id() != ToHex(mapped);
  if (!symbols || is_other) {
    file.state = SymbolFile::State::kFailed;
    file.opened.room.reset();
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
  // Last, as it may drop other files to make room.
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
  if (!file.IsOpen() || file.IsUnchanged()) return;
  Close(file);
}

// The same for a file that is remote, whose copy does not change with it. What
// does not answer now is what it was.
void SymbolFiles::CloseIfReplaced(const ProcessId& process,
                                  const Mapping& mapping, SymbolFile& file) {
  const auto now = Clock::now();
  if (!file.opened.remote || now - file.looked < kLookAgainAfter) return;
  file.looked = now;
  const auto other = options_.opener->Hold(process.pid, mapping);
  if (!other || (other->size == file.opened.size &&
                 other->mtime_ns == file.opened.mtime_ns)) {
    return;
  }
  Close(file);
}

void SymbolFiles::Close(SymbolFile& file) {
  Drop(file);
  file.opened = {};
  file.state = SymbolFile::State::kClosed;
  --open_files_;
}

bool SymbolFiles::MayRetry(const ProcessId& process, const SymbolFile& file) {
  if (file.state != SymbolFile::State::kFailed) return false;
  if (file.reason == Unresolved::kNotInTime) {
    return Clock::now() - file.looked >= kRetryAfter;
  }
  return file.failures < kMaxFailures && file.tried != process;
}

void SymbolFiles::Pin(const ProcessId& process, const Mapping& mapping) {
  SymbolFile& file = FileOf(process, mapping);
  CloseIfChanged(file);
  CloseIfReplaced(process, mapping, file);
  const bool retry = MayRetry(process, file);
  if (retry || file.state == SymbolFile::State::kClosed) {
    Open(process, mapping, file);
  }
}

SymbolFile& SymbolFiles::Load(const ProcessId& process,
                              const Mapping& mapping) {
  SymbolFile* file = &FileOf(process, mapping);
  const bool was_silent = file->reason == Unresolved::kNotInTime;
  if (file->state == SymbolFile::State::kClosed ||
      (was_silent && MayRetry(process, *file))) {
    file = &Open(process, mapping, *file);
  }
  if (file->state == SymbolFile::State::kPinned) {
    Read(process, mapping.path, *file);
    // Each way to a file puts it first, so that this is its place.
    if (!file->build_id.empty()) build_ids_.Add(files_.begin());
  }
  return *file;
}

SymbolFile* SymbolFiles::LoadAgain(std::string_view build_id) {
  const auto* claimed = build_ids_.Find(build_id);
  if (claimed == nullptr || claimed->is_disputed) return nullptr;
  files_.splice(files_.begin(), files_, claimed->file);
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
  const auto* claimed = build_ids_.Find(build_id);
  if (claimed == nullptr) {
    return Fail(ErrorCode::kNotFound, "no file of that build-id is known");
  }
  const SymbolFile& file = claimed->file->second;
  if (claimed->is_disputed) {
    return Fail(ErrorCode::kPermission,
                std::string(file.path) +
                    ": files of several users claim the "
                    "build-id " +
                    std::string(build_id));
  }
  // The file may have been read again since it claimed the build-id.
  if (file.build_id != build_id) {
    return Fail(ErrorCode::kNotFound,
                std::string(file.path) + ": not open any more, or changed");
  }
  auto copy = file.Copy();
  if (!copy) return Fail(std::move(copy.error()));
  auto opened = options_.opener->Open(*copy);
  if (!opened) {
    return Fail(std::move(opened.error()).WithContext(file.path));
  }
  return Symbolizer::ProgramFile{
      ByteSource::OfFile(
          std::move(copy->fd), copy->size,
          {.owner = OwnerOfCopy(*copy), .room = std::move(copy->room)}),
      FinderOf(file)};
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
  // Before the file is looked at: what was named once keeps its name.
  const auto found = file.names.find(match.index);
  if (found != file.names.end()) return found->second;
  if (!file.symbols || !file.IsUnchanged()) {
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

// Reads where functions begin. What cannot be read has none: the address has no
// name in any case. Returns the bytes that it takes.
size_t SymbolFiles::ReadFunctions(SymbolFile& file) {
  FunctionRanges ranges;
  if (file.symbols && file.IsUnchanged()) {
    const ByteSource& source = file.symbols->source();
    auto loaded = FunctionRanges::Load(source, options_.table_room);
    if (loaded) ranges = std::move(*loaded);
    const auto image = ElfImage::Parse(source);
    if (image) file.start_code = FindStartCode(source, *image);
  }
  const size_t bytes = ranges.memory_bytes();
  file.functions = std::move(ranges);
  return bytes;
}

// Code may have no symbol: the functions that each program begins with are
// known all the same, and of others where they begin.
void SymbolFiles::ResolveFunction(SymbolFile& file, FileOffset offset,
                                  UserSymbol& symbol) {
  const size_t bytes = file.functions ? 0 : ReadFunctions(file);
  if (!file.symbols || !file.functions) return;
  const auto address = ToElfAddress(file.symbols->segments(), offset);
  const auto start =
      address ? file.functions->FindStart(*address) : std::nullopt;
  const auto& known = file.start_code;
  if (start && known && (*start == known->main || *start == known->start)) {
    symbol.name = *start == known->main ? "main" : "_start";
    symbol.symbol_offset = *address - *start;
    symbol.reason = Unresolved::kNone;
  } else {
    symbol.function_start = start;
  }
  // Last: where memory ends it may drop the file.
  if (file.charged_bytes > 0) Charge(file, bytes);
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
    ResolveFunction(file, offset, symbol);
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
  // The descriptor stays: the file can be read again without its process.
  file.opened.fd = std::move(*file.symbols).TakeFd();
  file.symbols.reset();
  file.names = {};
  file.functions.reset();
  file.start_code.reset();
  file.state = SymbolFile::State::kPinned;
}

void SymbolFiles::EnforceDescriptors() {
  const size_t limit = std::max<size_t>(options_.max_open_files, 1);
  for (auto it = files_.end(); open_files_ > limit && it != files_.begin();) {
    SymbolFile& file = (--it)->second;
    Drop(file);
    if (file.state != SymbolFile::State::kPinned) continue;
    Close(file);
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
