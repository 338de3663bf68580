// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/markup_names.h"

#include <optional>
#include <utility>

#include "ksym/base/printable.h"
#include "ksym/demangle/demangle.h"

namespace ksym {
namespace {

// Frames hold views of them, so they are cleared between lookups only.
constexpr size_t kMaxShownNames = size_t{1} << 16;

// A log of the kernel's image says where it is and not where it was linked to,
// so its addresses there are those in memory; they count from `_stext`.
bool CountsFromText(const MarkupMmap& mmap) {
  return MarkupKernel::IsKernelAddress(mmap.address) &&
         mmap.module_address.value == mmap.address.value;
}

std::optional<ElfAddress> KernelTextOf(const ModuleFile& file) {
  if (!file.symbols) return std::nullopt;
  return file.symbols->kernel_text();
}

ElfAddress InFile(const ModuleFile& file, const MarkupMmap& mmap,
                  Address address) {
  const auto text = KernelTextOf(file);
  if (text && CountsFromText(mmap)) return *text + (address - mmap.address);
  return mmap.ToModule(address);
}

}  // namespace

MarkupNames::MarkupNames(MarkupNamesOptions options)
    : options_(std::move(options)),
      finder_(options_.places),
      kernel_(options_.kernel_symbols) {}

Result<std::span<const MarkupFrame>> MarkupNames::ResolveCode(
    const MarkupMmap& mmap, Address address) {
  frames_.clear();
  const auto file = FindFile(mmap);
  if (!file) return Fail(file.error());
  if (*file != nullptr) {
    Resolve(**file, InFile(**file, mmap, address));
    return frames_;
  }
  const auto found = FindInKernel(mmap, address, MarkupKernel::Kind::kCode);
  if (!found) return Fail(found.error());
  if (const std::optional<MarkupDatum>& code = *found) {
    frames_.push_back({.function = code->name,
                       .has_symbol = true,
                       .offset = code->offset,
                       .file = {}});
  }
  return frames_;
}

Result<MarkupDatum> MarkupNames::ResolveData(const MarkupMmap& mmap,
                                             Address address) {
  const auto file = FindFile(mmap);
  if (!file) return Fail(file.error());
  if (*file == nullptr) {
    const auto found = FindInKernel(mmap, address, MarkupKernel::Kind::kData);
    if (!found) return Fail(found.error());
    return found->value_or(MarkupDatum());
  }
  const ElfAddress at = InFile(**file, mmap, address);
  const std::optional<LinkerSymbols>& symbols = (*file)->symbols;
  if (!symbols) return MarkupDatum();
  const auto symbol = symbols->Find(at);
  if (!symbol) return MarkupDatum();
  return MarkupDatum{Shown(symbol->name), at - symbol->start};
}

// The user's kernel symbols, then a file, then the running kernel's.
Result<ModuleFile*> MarkupNames::FindFile(const MarkupMmap& mmap) {
  // First of all, so that nothing is dropped that this call returns.
  if (file_bytes_ >= options_.cache_bytes) DropFiles();
  if (shown_.size() + shown_paths_.size() > kMaxShownNames) {
    shown_.clear();
    shown_paths_.clear();
  }
  const bool in_kernel = MarkupKernel::IsKernelAddress(mmap.address);
  if (in_kernel && kernel_.has_symbols_of_user()) return nullptr;
  File& file = FileOf(*mmap.module);
  if (!in_kernel) {
    if (file) return &*file;
    return Fail(file.error());
  }
  const std::string why =
      file ? WhyNotOfKernel(*file, mmap) : file.error().message();
  if (why.empty()) return &*file;
  if (kernel_.IsRunning(mmap)) return nullptr;
  return Fail(file ? ErrorCode::kUnsupported : file.error().code(), why);
}

std::string MarkupNames::WhyNotOfKernel(const ModuleFile& file,
                                        const MarkupMmap& mmap) {
  const char* const cure = "; --kernel-symbols is needed";
  if (file.symbols && !file.symbols->is_linked()) {
    return file.path + ": does not say where its sections are" + cure;
  }
  // It may be of such a file, whose addresses are low.
  if (!file.symbols &&
      !MarkupKernel::IsKernelAddress({mmap.module_address.value})) {
    return std::string("a GSYM file does not say where sections are") + cure;
  }
  if (CountsFromText(mmap) && !KernelTextOf(file)) {
    return (file.path.empty() ? "a GSYM file" : file.path) +
           ": has no _stext, which the kernel's addresses count from" + cure;
  }
  return {};
}

Result<std::optional<MarkupDatum>> MarkupNames::FindInKernel(
    const MarkupMmap& mmap, Address address, MarkupKernel::Kind kind) {
  const auto found = kernel_.Find(mmap, address, kind);
  if (!found) return Fail(found.error());
  const std::optional<KernelSymbol>& symbol = *found;
  if (!symbol) return std::nullopt;
  shown_kernel_ = Printable(symbol->name);
  if (options_.demangle == SymbolizerOptions::Demangle::kOn) {
    shown_kernel_ = Demangle(shown_kernel_);
  }
  return MarkupDatum{shown_kernel_, symbol->offset};
}

// The linker's name of the function is the one that counts, as debug data may
// not have its linkage name.
void MarkupNames::Resolve(ModuleFile& file, ElfAddress address) {
  uint64_t start = address.value;
  if (file.gsym) {
    start = AddGsymFrames(file.gsym->file(), address);
  } else if (file.dwarf) {
    const size_t before = file.dwarf->memory_bytes();
    AddDwarfFrames(*file.dwarf, address);
    file_bytes_ += file.dwarf->memory_bytes() - before;
  }
  const bool has_places = !frames_.empty();
  if (has_places) frames_.back().offset = address.value - start;
  if (!file.symbols) return;
  const auto symbol = file.symbols->Find(address);
  if (!symbol) return;
  const std::string_view path = ShownPath({}, symbol->source_file);
  if (!has_places) frames_.emplace_back();
  MarkupFrame& function = frames_.back();
  if (function.file.empty()) function.file = path;
  function.function = Shown(symbol->name);
  function.has_symbol = true;
  function.symbol_file = path;
  function.offset = address - symbol->start;
}

void MarkupNames::AddDwarfFrames(DwarfPlaces& dwarf, ElfAddress address) {
  dwarf.Find(address, places_);
  for (const DwarfPlace& place : places_) {
    MarkupFrame& frame = frames_.emplace_back();
    frame.function = Shown(place.function);
    if (place.file != nullptr) {
      frame.file = ShownPath(place.file->directory, place.file->base);
    }
    frame.line = place.line;
    frame.column = place.column;
  }
}

// Returns where the function starts.
uint64_t MarkupNames::AddGsymFrames(const GsymFile& gsym, ElfAddress address) {
  const auto found = LookupGsym(gsym, address, gsym_answer_);
  if (!found || !*found) return address.value;
  for (const GsymFrame& place : gsym_answer_.frames) {
    frames_.push_back({.function = Shown(place.function),
                       .file = ShownPath(place.directory, place.file),
                       .line = place.line});
  }
  return gsym_answer_.start.value;
}

std::string MarkupNames::Demangle(std::string_view linkage_name) {
  return ksym::Demangle(linkage_name);
}

void MarkupNames::Reset() {
  // The keys are modules of the context, which a reset drops.
  module_files_.clear();
  kernel_.Reset();
  // A file that was missing may be there for the next process.
  std::erase_if(files_, [](const auto& entry) { return !entry.second; });
}

std::string_view MarkupNames::Shown(std::string_view name) {
  if (name.empty()) return {};
  const auto [place, added] = shown_.try_emplace(name.data());
  if (added) {
    place->second =
        Printable(options_.demangle == SymbolizerOptions::Demangle::kOn
                      ? Demangle(name)
                      : std::string(name));
  }
  return place->second;
}

std::string_view MarkupNames::ShownPath(std::string_view directory,
                                        std::string_view base) {
  if (base.empty()) return {};
  const auto [place, added] =
      shown_paths_.try_emplace(std::pair(directory.data(), base.data()));
  if (added) {
    std::string path(directory);
    if (!path.empty() && !path.ends_with('/')) path += '/';
    place->second = Printable(path += base);
  }
  return place->second;
}

MarkupNames::File& MarkupNames::FileOf(const MarkupModule& module) {
  const auto known = module_files_.find(&module);
  if (known != module_files_.end()) return *known->second;
  auto file = files_.find(module.build_id);
  if (file == files_.end()) {
    file = files_.emplace(module.build_id, finder_.Load(module.build_id)).first;
    if (file->second) file_bytes_ += file->second->memory_bytes();
  }
  module_files_.emplace(&module, &file->second);
  return file->second;
}

const std::set<std::string>& MarkupNames::NoteProblems() {
  for (const auto& [build_id, file] : files_) {
    std::string problem = file ? file->Problem() : std::string();
    if (!problem.empty()) problems_.insert(std::move(problem));
  }
  return problems_;
}

void MarkupNames::DropFiles() {
  // While the files are there that know them.
  NoteProblems();
  module_files_.clear();
  shown_.clear();
  shown_paths_.clear();
  files_.clear();
  file_bytes_ = 0;
}

}  // namespace ksym
