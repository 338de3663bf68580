#include "ksym/kernel/module_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "ksym/base/text.h"

namespace ksym {

std::vector<KernelModule> ParseModules(std::string_view text) {
  std::vector<KernelModule> modules;
  while (!text.empty()) {
    std::string_view line = TakeField(text, '\n');
    const std::string_view name = TakeField(line, ' ');
    const auto size = ParseUnsigned(TakeField(line, ' '), 10);
    for (int skipped = 0; skipped < 3; ++skipped) TakeField(line, ' ');
    std::string_view address = TakeField(line, ' ');
    if (name.empty() || !size || !address.starts_with("0x")) continue;
    address.remove_prefix(2);
    const auto start = ParseUnsigned(address, 16);
    if (!start || *start == 0 || *start + *size < *start) continue;
    modules.push_back(
        {std::string(name), {Address{*start}, Address{*start + *size}}});
  }
  return modules;
}

std::vector<KernelModule> ModulesOfTable(std::vector<KernelModule> before,
                                         const std::vector<KernelModule>& after,
                                         const KernelSymbolSource& table) {
  std::vector<KernelModule> came;
  std::ranges::copy_if(
      after, std::back_inserter(came), [&](const auto& module) {
        return std::ranges::find(before, module) == before.end();
      });
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
    if (std::ranges::find(modules_, module) == modules_.end()) {
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
    if (std::ranges::find(now, modules_[i]) == now.end()) is_gone_[i] = true;
  }
  return doubtful;
}

}  // namespace ksym
