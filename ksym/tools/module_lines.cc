// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/module_lines.h"

#include <utility>

#include "ksym/gsym_convert.h"

namespace ksym {
namespace {

// A process can map a file that is large and empty.
constexpr uint64_t kMaxFileBytes = uint64_t{4} << 30;

}  // namespace

const GsymAnswer* ModuleLines::Find(std::string_view build_id,
                                    FileOffset offset) {
  auto at = modules_.find(build_id);
  if (at == modules_.end()) {
    at = modules_.emplace(build_id, Make(build_id)).first;
  }
  const std::optional<Module>& module = at->second;
  if (!module) return nullptr;
  const auto address = ToElfAddress(module->segments, offset);
  if (!address) return nullptr;
  const auto found = LookupGsym(module->image.file(), *address, answer_);
  return found && *found ? &answer_ : nullptr;
}

std::optional<ModuleLines::Module> ModuleLines::Make(
    std::string_view build_id) const {
  const auto program = symbolizer_.OpenAgain(build_id);
  if (!program || program->source.size() > kMaxFileBytes) return std::nullopt;
  const auto elf = ElfImage::Parse(program->source);
  if (!elf) return std::nullopt;
  auto made = ConvertElfToGsym(program->source, program->finder, {});
  // Symbols alone say no more than the symbolizer does.
  if (!made || !made->has_dwarf) return std::nullopt;
  auto image = GsymImage::OfMemory(std::move(made->bytes));
  if (!image) return std::nullopt;
  return Module{std::move(*image), elf->segments()};
}

}  // namespace ksym
