// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/markup_kernel.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/elf/build_id_note.h"
#include "ksym/elf/elf_image.h"

namespace ksym {
namespace {

constexpr size_t kMaxNotesBytes = size_t{64} << 10;
constexpr size_t kMaxModulesBytes = size_t{4} << 20;

// A module's name as the kernel has it, from that of its file.
std::string ModuleName(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  if (name.starts_with('[') && name.ends_with(']')) {
    name = name.substr(1, name.size() - 2);
  }
  name = name.substr(0, name.find(".ko"));
  std::string plain(name);
  // The kernel's build makes an identifier of the file's name (KBUILD_MODNAME).
  std::ranges::replace(plain, '-', '_');
  return plain;
}

// Where /proc/modules says that the module begins:
//   ext4 937984 1 - Live 0xffffffffc0a53000
std::optional<Address> FindModuleStart(std::string_view modules,
                                       std::string_view name) {
  while (!modules.empty()) {
    std::string_view line = TakeField(modules, '\n');
    if (TakeField(line, ' ') != name) continue;
    constexpr int kFieldsBefore = 4;
    for (int i = 0; i < kFieldsBefore; ++i) TakeField(line, ' ');
    std::string_view start = TakeField(line, ' ');
    if (!start.starts_with("0x")) return std::nullopt;
    start.remove_prefix(2);
    const auto value = ParseUnsigned(start, 16);
    // Zero: not shown to us.
    if (!value || *value == 0) return std::nullopt;
    return Address{*value};
  }
  return std::nullopt;
}

}  // namespace

MarkupKernel::MarkupKernel(std::string symbols_path, RunningKernelPaths paths)
    : symbols_path_(std::move(symbols_path)), paths_(std::move(paths)) {}

Status MarkupKernel::LoadSymbolsOfUser() {
  if (!has_symbols_of_user()) return {};
  const auto& symbols = Symbols();
  if (!symbols) return Fail(symbols.error());
  return {};
}

bool MarkupKernel::IsRunning(const MarkupMmap& mmap) {
  const auto [place, added] = running_.try_emplace(&mmap, false);
  if (added) place->second = ComputeIsRunning(mmap);
  return place->second;
}

bool MarkupKernel::ComputeIsRunning(const MarkupMmap& mmap) const {
  const MarkupModule& module = *mmap.module;
  if (const auto notes = ReadFile(paths_.notes, kMaxNotesBytes);
      notes && FindBuildIdNote(*notes) == module.build_id) {
    return true;
  }
  const std::string name = ModuleName(module.name);
  // A log says the name, which becomes part of a path: ".." would lead up.
  if (name.empty() || name.starts_with('.')) return false;
  const auto notes = ReadFile(
      paths_.module_directory + '/' + name + "/notes/.note.gnu.build-id",
      kMaxNotesBytes);
  if (!notes || FindBuildIdNote(*notes) != module.build_id) return false;
  const auto modules = ReadFile(paths_.modules, kMaxModulesBytes);
  // The build-id alone is not enough: a module that was loaded again since is
  // somewhere else.
  return modules && FindModuleStart(*modules, name) == mmap.address;
}

const Result<KernelSymbolSource>& MarkupKernel::Symbols() {
  if (symbols_) return *symbols_;
  symbols_ =
      OpenKernelSymbols(has_symbols_of_user() ? symbols_path_ : paths_.symbols);
  if (*symbols_) {
    for (const char* name : {"_text", "_stext"}) {
      const auto found = (*symbols_)->FindByName(name);
      starts_.insert(starts_.end(), found.begin(), found.end());
    }
  }
  return *symbols_;
}

bool MarkupKernel::IsAtStart(const MarkupMmap& mmap) const {
  return std::ranges::find(starts_, mmap.address) != starts_.end();
}

Result<std::optional<KernelSymbol>> MarkupKernel::Find(const MarkupMmap& mmap,
                                                       Address address,
                                                       Kind kind) {
  const auto& symbols = Symbols();
  if (!symbols) return Fail(symbols.error());
  SymbolQuery query;
  if (kind == Kind::kData) query.kinds = SymbolKinds::kAll;
  const auto symbol = symbols->Find(address, buffer_, query);
  if (!symbol) return std::nullopt;
  if (symbol->module.empty()) {
    if (IsAtStart(mmap)) return symbol;
    return Fail(ErrorCode::kInvalid,
                "the kernel's symbols are of another boot (a region has to "
                "begin at _text or _stext)");
  }
  if (symbol->module != ModuleName(mmap.module->name)) {
    return Fail(ErrorCode::kInvalid,
                "another kernel module is at this place now");
  }
  return symbol;
}

}  // namespace ksym
