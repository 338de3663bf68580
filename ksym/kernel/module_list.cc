// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/module_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ksym/base/text.h"

namespace ksym {
namespace {

// The one of these that is the same, or the end.
template <typename Modules>
auto FindSame(Modules& modules, const KernelModule& module) {
  return std::ranges::find_if(modules, [&](const KernelModule& other) {
    return IsSameModule(module, other);
  });
}

void EndWhereOthersBegin(std::vector<KernelModule>& modules) {
  std::vector<Address> starts;
  starts.reserve(modules.size());
  for (const KernelModule& module : modules) {
    starts.push_back(module.memory.start);
  }
  std::ranges::sort(starts);
  for (KernelModule& module : modules) {
    const auto next = std::ranges::upper_bound(starts, module.memory.start);
    if (next != starts.end()) {
      module.memory.end = std::min(module.memory.end, *next);
    }
  }
}

}  // namespace

bool IsSameModule(const KernelModule& a, const KernelModule& b) {
  return a.name == b.name && a.memory.start == b.memory.start &&
         (a.bytes == b.bytes || a.is_loading || b.is_loading);
}

bool IsModuleName(std::string_view module) {
  return !module.empty() && module != "bpf" &&
         !module.starts_with("__builtin__");
}

std::vector<KernelModule> ParseModules(std::string_view text) {
  std::vector<KernelModule> modules;
  while (!text.empty()) {
    std::string_view line = TakeField(text, '\n');
    const std::string_view name = TakeField(line, ' ');
    const auto size = ParseUnsigned(TakeField(line, ' '), 10);
    for (int skipped = 0; skipped < 2; ++skipped) TakeField(line, ' ');
    const bool is_loading = TakeField(line, ' ') == "Loading";
    std::string_view address = TakeField(line, ' ');
    if (name.empty() || !size || !address.starts_with("0x")) continue;
    address.remove_prefix(2);
    const auto start = ParseUnsigned(address, 16);
    if (!start || *start == 0 || *start + *size < *start) continue;
    modules.push_back({.name = std::string(name),
                       .memory = {Address{*start}, Address{*start + *size}},
                       .bytes = *size,
                       .is_loading = is_loading});
  }
  EndWhereOthersBegin(modules);
  return modules;
}

std::vector<KernelModule> ModulesOfTable(std::vector<KernelModule> before,
                                         const std::vector<KernelModule>& after,
                                         const KernelSymbolSource& table) {
  std::vector<KernelModule> came;
  for (const KernelModule& module : after) {
    const auto same = FindSame(before, module);
    if (same == before.end()) {
      came.push_back(module);
    } else {
      *same = module;  // it may have been loading
    }
  }
  if (came.empty()) return before;
  SymbolNameBuffer buffer;
  table.ForEach(buffer, [&](const KernelSymbol& symbol) {
    const auto found = std::ranges::find_if(came, [&](const auto& module) {
      return module.name == symbol.module &&
             module.memory.start <= symbol.start &&
             symbol.start < module.memory.end;
    });
    if (found != came.end()) {
      before.push_back(std::move(*found));
      came.erase(found);
    }
    return !came.empty();
  });
  return before;
}

std::vector<KernelRange> ModuleList::Newcomers(
    const std::vector<KernelModule>& now) const {
  std::vector<KernelRange> newcomers;
  for (const KernelModule& module : now) {
    if (FindSame(modules_, module) == modules_.end()) {
      newcomers.push_back(module.memory);
    }
  }
  return newcomers;
}

std::vector<KernelRange> ModuleList::EndInterval(
    const std::vector<KernelModule>& now) {
  std::vector<KernelRange> doubtful = Newcomers(now);
  for (size_t i = 0; i < modules_.size(); ++i) {
    if (is_gone_[i]) doubtful.push_back(modules_[i].memory);
    if (FindSame(now, modules_[i]) == now.end()) is_gone_[i] = true;
  }
  return doubtful;
}

}  // namespace ksym
