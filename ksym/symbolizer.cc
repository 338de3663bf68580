// SPDX-License-Identifier: Apache-2.0
#include "ksym/symbolizer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "ksym/base/bounded_name.h"
#include "ksym/base/string_pool.h"
#include "ksym/base/warning_list.h"
#include "ksym/process/perf_map.h"
#include "ksym/process/shared_path.h"
#include "ksym/process/vdso.h"
#include "ksym/symbolizer_files.h"

namespace ksym {
namespace {

using Clock = std::chrono::steady_clock;

// How often a perf map is looked for, or looked at for growth, at most.
constexpr auto kPerfMapPeriod = std::chrono::milliseconds(100);
// Processes whose perf maps are kept; each holds a descriptor.
constexpr size_t kMaxPerfMaps = 128;
// Bytes of all perf maps together. Beyond it the largest is given up for good,
// so that a process that writes large ones loses names and no other does.
constexpr size_t kMaxPerfMapBytes = size_t{64} << 20;

// Memory that no file stands behind: "", "[heap]", "[stack]", "[anon:...]",
// "//anon"; and what the kernel shows as an unnamed file of its own.
bool IsAnonymous(const Mapping& mapping) {
  const std::string_view path = mapping.path;
  return path.empty() || path.starts_with('[') || path.starts_with("//") ||
         path.starts_with("/dev/zero") || path.starts_with("/anon_hugepage") ||
         path.starts_with("/SYSV");
}

// The one page that every process on x86-64 has beside its mappings; neither
// reports nor PROCMAP_QUERY tell of it.
bool IsVsyscall(Address address) {
  constexpr Address kStart{0xffffffffff600000};
  return address >= kStart && address < kStart + 0x1000;
}

SymbolizerOptions WithOpener(SymbolizerOptions options) {
  if (!options.opener) options.opener = DirectFileOpener();
  return options;
}

// What a perf map that was not opened means for its process's frames.
Unresolved ReasonOfRefusal(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return Unresolved::kAnonymous;
    case ErrorCode::kPermission:
      return Unresolved::kNoPermission;
    default:
      return Unresolved::kMapRefused;
  }
}

}  // namespace

std::string_view UnresolvedName(Unresolved reason) {
  switch (reason) {
    case Unresolved::kNone:
      return "none";
    case Unresolved::kUnmapped:
      return "unmapped";
    case Unresolved::kNoProcess:
      return "no-process";
    case Unresolved::kAnonymous:
      return "anonymous";
    case Unresolved::kNoSymbols:
      return "no-symbols";
    case Unresolved::kNoSymbol:
      return "no-symbol";
    case Unresolved::kNoPermission:
      return "no-permission";
    case Unresolved::kGone:
      return "gone";
    case Unresolved::kFileChanged:
      return "file-changed";
    case Unresolved::kMalformed:
      return "malformed";
    case Unresolved::kTooLarge:
      return "too-large";
    case Unresolved::kAmbiguous:
      return "ambiguous";
    case Unresolved::kMapRefused:
      return "map-refused";
    case Unresolved::kNotInTime:
      return "not-in-time";
  }
  return "none";
}

class Symbolizer::Impl {
 public:
  explicit Impl(SymbolizerOptions options)
      : options_(WithOpener(std::move(options))),
        pool_(options_.max_name_bytes),
        files_(options_, pool_, warnings_) {}

  void Pin(const ProcessImage& image) {
    bool anonymous = false;
    for (const Mapping& mapping : image.mappings) {
      if (IsAnonymous(mapping)) {
        // The vdso and vsyscall pages are in every process.
        anonymous = anonymous || !mapping.path.starts_with("[v");
      } else {
        files_.Pin(image.id, mapping);
      }
    }
    if (anonymous && options_.files == SymbolizerOptions::Files::kOfProcess) {
      PerfMapState& state = StateOf(image.id);
      OpenIfMissing(image.id, state);
      state.due = {};
    }
  }

  UserSymbol Resolve(const ProcessImage& image, Address address) {
    UserSymbol symbol;
    const Mapping* mapping = image.Find(address);
    if (mapping == nullptr && IsVsyscall(address)) {
      symbol.module = "[vsyscall]";
      symbol.reason = Unresolved::kNoSymbols;
      return symbol;
    }
    if (mapping == nullptr) {
      symbol.reason = image.mappings.empty() ? Unresolved::kNoProcess
                                             : Unresolved::kUnmapped;
      return symbol;
    }
    symbol.module = ModuleOf(mapping->path);
    symbol.file_offset = mapping->file_offset + (address - mapping->start);
    if (mapping->path == "[vdso]") {
      // No offset in a file: the image begins where the mapping does.
      symbol.file_offset = {address - mapping->start};
      files_.Resolve(Vdso(), symbol.file_offset, symbol);
    } else if (mapping->path == "[vsyscall]") {
      symbol.reason = Unresolved::kNoSymbols;
    } else if (mapping->path == kReplacedPath) {
      symbol.file_offset = {};
      symbol.reason = Unresolved::kAmbiguous;
    } else if (mapping->path == kTooLargePath) {
      symbol.file_offset = {};
      symbol.reason = Unresolved::kTooLarge;
    } else if (IsAnonymous(*mapping)) {
      symbol.file_offset = {};
      symbol.reason = Unresolved::kAnonymous;
      ResolveInPerfMap(image.id, address, symbol);
    } else {
      SymbolFile& file = files_.Load(image.id, *mapping);
      files_.Resolve(file, symbol.file_offset, symbol);
      // Some compilers write their code to a memfd and map that.
      if (symbol.reason == Unresolved::kMalformed) {
        ResolveInPerfMap(image.id, address, symbol);
      }
    }
    return symbol;
  }

  void SetDebugFileSource(DebugFileSource source) {
    files_.SetDebugFileSource(std::move(source));
  }

  UserSymbol ResolveAgain(std::string_view build_id, FileOffset offset) {
    UserSymbol symbol;
    symbol.file_offset = offset;
    SymbolFile* file = files_.LoadAgain(build_id);
    if (file == nullptr) {
      symbol.reason = Unresolved::kGone;
    } else {
      files_.Resolve(*file, offset, symbol);
    }
    return symbol;
  }

  Result<ProgramFile> OpenAgain(std::string_view build_id) const {
    return files_.OpenAgain(build_id);
  }

  Statistics statistics() const {
    Statistics statistics = files_.statistics();
    statistics.name_bytes = pool_.bytes();
    statistics.perf_maps_refused = perf_maps_refused_;
    statistics.files_given_up = options_.opener->given_up();
    return statistics;
  }

  std::vector<std::string> TakeWarnings() {
    std::vector<std::string> warnings = warnings_.Take();
    std::ranges::move(options_.opener->TakeWarnings(),
                      std::back_inserter(warnings));
    return warnings;
  }

 private:
  struct PerfMapState {
    std::optional<PerfMapFile> file;
    // Why an address that is not in the file has no name.
    Unresolved reason = Unresolved::kAnonymous;
    std::string refusal;  // in words; empty: nothing to complain of
    bool warned = false;
    bool too_large = false;  // then there is no file any more
    Clock::time_point due;   // when it is worth another look
    Clock::time_point used;
  };

  // Addresses of one file mostly follow each other. The copy keeps the text, so
  // that nothing else is at its place.
  std::string_view ModuleOf(const SharedPath& path) {
    if (!path.IsSharedWith(last_path_)) {
      last_module_ = pool_.Intern(BoundPath(path, name_room_)).value_or("");
      last_path_ = path;
    }
    return last_module_;
  }

  SymbolFile& Vdso() {
    if (!vdso_) {
      vdso_ = files_.LoadImage(
          options_.vdso_image.empty() ? OwnVdsoImage() : options_.vdso_image);
    }
    return *vdso_;
  }

  PerfMapState& StateOf(const ProcessId& process) {
    const auto [it, is_new] = perf_maps_.try_emplace(process);
    PerfMapState& state = it->second;
    state.used = Clock::now();
    if (is_new && perf_maps_.size() > kMaxPerfMaps) {
      perf_maps_.erase(std::min_element(
          perf_maps_.begin(), perf_maps_.end(),
          [](auto& a, auto& b) { return a.second.used < b.second.used; }));
    }
    return state;
  }

  void OpenIfMissing(const ProcessId& process, PerfMapState& state) const {
    if (state.file || state.too_large) return;
    auto file = PerfMapFile::Open(process, options_.opener);
    state.refusal.clear();
    if (file) {
      state.file = std::move(*file);
      state.reason = Unresolved::kAnonymous;
      return;
    }
    state.reason = ReasonOfRefusal(file.error().code());
    if (state.reason == Unresolved::kMapRefused) {
      state.refusal = file.error().message();
    }
  }

  // Only once a name is wanted: who has no samples there needs no map.
  void Warn(const ProcessId& process, PerfMapState& state) {
    if (state.refusal.empty() || state.warned) return;
    state.warned = true;
    ++perf_maps_refused_;
    warnings_.Add("perf map of process " + std::to_string(process.pid) +
                  " not used: " + state.refusal);
  }

  void Refresh(PerfMapState& state) {
    if (!state.file) return;
    // After any other failure what was read before stays usable.
    const auto refreshed = state.file->Refresh();
    if (!refreshed && refreshed.error().code() == ErrorCode::kLimit) {
      GiveUp(state, refreshed.error().message());
    } else if (state.file->full()) {
      state.reason = Unresolved::kTooLarge;
      state.refusal = state.file->path() + ": the entries beyond " +
                      std::to_string(PerfMap::kMaxEntries) + ", or " +
                      std::to_string(PerfMap::kMaxNameBytes >> 20) +
                      " MiB of names";
    }
    size_t bytes = 0;
    size_t most = 0;
    PerfMapState* largest = nullptr;
    std::string path;
    for (auto& [process, other] : perf_maps_) {
      if (!other.file) continue;
      const size_t own = other.file->memory_bytes();
      bytes += own;
      if (own <= most) continue;
      most = own;
      largest = &other;
      path = other.file->path();
    }
    if (bytes > kMaxPerfMapBytes && largest != nullptr) {
      GiveUp(*largest, path +
                           ": the largest of perf maps that take more than " +
                           std::to_string(kMaxPerfMapBytes >> 20) +
                           " MiB of memory together");
    }
  }

  static void GiveUp(PerfMapState& state, std::string why) {
    state.file.reset();
    state.too_large = true;
    state.reason = Unresolved::kTooLarge;
    state.refusal = std::move(why);
  }

  void ResolveInPerfMap(const ProcessId& process, Address address,
                        UserSymbol& symbol) {
    // The file of a process that is not of this machine, or gone, could be
    // another's.
    if (options_.files != SymbolizerOptions::Files::kOfProcess) return;
    PerfMapState& state = StateOf(process);
    if (state.used >= state.due) {
      OpenIfMissing(process, state);
      // Also where there is none: most processes never write one.
      state.due = state.used + kPerfMapPeriod;
      Refresh(state);
    }
    const auto match = state.file ? state.file->Find(address) : std::nullopt;
    if (!match) {
      if (symbol.reason == Unresolved::kAnonymous) symbol.reason = state.reason;
      Warn(process, state);
      return;
    }
    const auto name = pool_.Intern(match->name);
    symbol.reason = name ? Unresolved::kNone : Unresolved::kTooLarge;
    symbol.name = name.value_or("");
    symbol.symbol_offset = name ? address - match->start : 0;
  }

  const SymbolizerOptions options_;
  StringPool pool_;
  WarningList warnings_;
  SymbolFiles files_;
  std::optional<SymbolFile> vdso_;
  std::map<ProcessId, PerfMapState> perf_maps_;
  std::string name_room_;
  SharedPath last_path_;
  std::string_view last_module_;  // of that path; in the pool
  uint64_t perf_maps_refused_ = 0;
};

Symbolizer::Symbolizer(SymbolizerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

Symbolizer::~Symbolizer() = default;

void Symbolizer::Pin(const ProcessImage& image) { impl_->Pin(image); }

UserSymbol Symbolizer::Resolve(const ProcessImage& image, Address address) {
  return impl_->Resolve(image, address);
}

void Symbolizer::SetDebugFileSource(DebugFileSource source) {
  impl_->SetDebugFileSource(std::move(source));
}

UserSymbol Symbolizer::ResolveAgain(std::string_view build_id,
                                    FileOffset offset) {
  return impl_->ResolveAgain(build_id, offset);
}

Result<Symbolizer::ProgramFile> Symbolizer::OpenAgain(
    std::string_view build_id) const {
  return impl_->OpenAgain(build_id);
}

Symbolizer::Statistics Symbolizer::statistics() const {
  return impl_->statistics();
}

std::vector<std::string> Symbolizer::TakeWarnings() {
  return impl_->TakeWarnings();
}

}  // namespace ksym
