#include "ksym/tools/markup_names.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "ksym/base/printable.h"
#include "ksym/demangle/demangle.h"
#include "ksym/elf/byte_source.h"
#include "ksym/process/mapped_file.h"

namespace ksym {
namespace {

constexpr size_t kMaxShownNames = size_t{1} << 16;

std::string Printable(std::string_view text) {
  std::string printable;
  AppendPrintable(text, printable);
  return printable;
}

}  // namespace

MarkupNames::MarkupNames(MarkupNamesOptions options)
    : options_(std::move(options)), kernel_(options_.kernel_symbols) {}

Result<std::span<const MarkupFrame>> MarkupNames::ResolveCode(
    const MarkupMmap& mmap, Address address) {
  const auto found = Find(mmap, address, MarkupKernel::Kind::kCode);
  if (!found) return Fail(found.error());
  const std::optional<Found>& code = *found;
  if (!code) return std::span<const MarkupFrame>();
  frame_.function = code->name;
  frame_.offset = code->offset;
  shown_file_ = Printable(code->file);
  frame_.file = shown_file_;
  return std::span<const MarkupFrame>(&frame_, 1);
}

Result<MarkupDatum> MarkupNames::ResolveData(const MarkupMmap& mmap,
                                             Address address) {
  const auto found = Find(mmap, address, MarkupKernel::Kind::kData);
  if (!found) return Fail(found.error());
  const std::optional<Found>& datum = *found;
  if (!datum) return MarkupDatum();
  return MarkupDatum{datum->name, datum->offset};
}

// The user's kernel symbols, then a file, then the running kernel's.
Result<std::optional<MarkupNames::Found>> MarkupNames::Find(
    const MarkupMmap& mmap, Address address, MarkupKernel::Kind kind) {
  const bool in_kernel = MarkupKernel::IsKernelAddress(mmap.address);
  const bool ask_kernel_first = in_kernel && kernel_.has_symbols_of_user();
  if (!ask_kernel_first) {
    const File& file = FileOf(*mmap.module);
    if (file) {
      const ElfAddress at = mmap.ToModule(address);
      const auto symbol = file->Find(at);
      if (!symbol) return std::nullopt;
      return Found{Shown(symbol->name), at - symbol->start,
                   symbol->source_file};
    }
    if (!in_kernel || !kernel_.IsRunning(mmap)) return Fail(file.error());
  }
  const auto found = kernel_.Find(mmap, address, kind);
  if (!found) return Fail(found.error());
  const std::optional<KernelSymbol>& symbol = *found;
  if (!symbol) return std::nullopt;
  shown_kernel_ = Printable(symbol->name);
  if (options_.demangle == SymbolizerOptions::Demangle::kOn) {
    shown_kernel_ = Demangle(shown_kernel_);
  }
  return Found{shown_kernel_, symbol->offset, {}};
}

std::string MarkupNames::Demangle(std::string_view linkage_name) {
  return ksym::Demangle(linkage_name);
}

void MarkupNames::Reset() {
  module_files_.clear();
  kernel_.Reset();
  // A file that was missing may be there for the next process.
  std::erase_if(files_, [](const auto& entry) { return !entry.second; });
}

std::string_view MarkupNames::Shown(std::string_view name) {
  if (shown_.size() > kMaxShownNames) shown_.clear();
  const auto [place, added] = shown_.try_emplace(name.data());
  if (added) {
    place->second =
        Printable(options_.demangle == SymbolizerOptions::Demangle::kOn
                      ? Demangle(name)
                      : std::string(name));
  }
  return place->second;
}

const MarkupNames::File& MarkupNames::FileOf(const MarkupModule& module) {
  const auto known = module_files_.find(&module);
  if (known != module_files_.end()) return *known->second;
  auto file = files_.find(module.build_id);
  if (file == files_.end()) {
    EnforceBytes();
    file = files_.emplace(module.build_id, Load(module.build_id)).first;
    if (file->second) file_bytes_ += file->second->memory_bytes();
  }
  module_files_.emplace(&module, &file->second);
  return file->second;
}

void MarkupNames::EnforceBytes() {
  if (file_bytes_ < options_.cache_bytes) return;
  module_files_.clear();
  shown_.clear();
  files_.clear();
  file_bytes_ = 0;
}

Result<LinkerSymbols> MarkupNames::Load(const std::string& build_id) const {
  const std::string below = "/.build-id/" + build_id.substr(0, 2) + '/' +
                            build_id.substr(2) + ".debug";
  std::vector<std::string> folders = options_.debug_folders;
  if (folders.empty()) folders.emplace_back("/usr/lib/debug");
  std::error_code ignored;
  for (const std::string& folder : folders) {
    const std::string path =
        std::filesystem::absolute(folder, ignored).string() + below;
    auto opened = OpenFileOfHost(path);
    if (!opened && opened.error().code() == ErrorCode::kNotFound) continue;
    if (!opened) return Fail(std::move(opened.error()).WithContext(path));
    auto symbols = LinkerSymbols::Load(
        ByteSource::OfFile(std::move(opened->fd), opened->size));
    if (!symbols) return Fail(std::move(symbols.error()).WithContext(path));
    // A file without one was put there on purpose.
    if (!symbols->build_id().empty() && symbols->build_id() != build_id) {
      return Fail(ErrorCode::kInvalid,
                  path + ": has build-id " + symbols->build_id());
    }
    return symbols;
  }
  return Fail(ErrorCode::kNotFound, "could not find build ID");
}

}  // namespace ksym
