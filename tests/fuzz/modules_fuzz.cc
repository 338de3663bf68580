// SPDX-License-Identifier: Apache-2.0
// Any text as /proc/modules, read twice: up to the first NUL when the kernel's
// table was read, after it later on. Modules are what the text says and
// survive being written and read again; what a change makes doubtful is memory
// of a module that came or went; and no symbol of a table reaches past the end
// of the module that it starts in.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/module_list.h"
#include "tests/ksym/kernel/kernel_tables.h"

namespace {

using ksym::KernelModule;
using Modules = std::vector<KernelModule>;

constexpr ksym::Address kText = {0xffffffff81000000};

void Check(bool ok) {
  if (!ok) std::abort();
}

std::string Written(const Modules& modules) {
  std::string text;
  for (const KernelModule& module : modules) {
    std::array<char, 64> numbers = {};
    std::snprintf(numbers.data(), numbers.size(), " %llu 0 - %s 0x%016llx\n",
                  static_cast<unsigned long long>(module.bytes),
                  module.is_loading ? "Loading" : "Live",
                  static_cast<unsigned long long>(module.memory.start.value));
    text += module.name + numbers.data();
  }
  return text;
}

Modules Parse(std::string_view text) {
  Modules modules = ksym::ParseModules(text);
  Check(modules.size() <=
        static_cast<size_t>(std::ranges::count(text, '\n')) + 1);
  for (const KernelModule& module : modules) {
    Check(!module.name.empty() && text.contains(module.name));
    Check(module.name.find_first_of(" \n") == std::string::npos);
    Check(module.memory.start.value != 0 &&
          module.memory.start <= module.memory.end);
  }
  Check(ksym::ParseModules(Written(modules)) == modules);
  return modules;
}

bool Has(const Modules& modules, ksym::KernelRange memory) {
  return std::ranges::find(modules, memory, &KernelModule::memory) !=
         modules.end();
}

void CheckChanges(const Modules& then, const Modules& now) {
  ksym::ModuleList list(then);
  Check(list.EndInterval(then).empty());
  for (const auto& doubtful : list.EndInterval(now)) Check(Has(now, doubtful));
  for (const auto& doubtful : list.EndInterval(now)) {
    Check(Has(now, doubtful) || Has(then, doubtful));
  }
}

void CheckTable(std::string_view text, const Modules& modules) {
  std::string listing = "ffffffff81000000 T _stext\n";  // kText
  for (const KernelModule& module : modules) {
    if (module.name.contains('\t')) return;  // which a listing cannot say
    std::array<char, 32> head = {};
    std::snprintf(head.data(), head.size(), "%016llx t f\t[",
                  static_cast<unsigned long long>(module.memory.start.value));
    listing += head.data() + module.name + "]\n";
  }
  const ksym::UniqueFd fd = ksym_test::FdOf(listing);
  ksym::FdStream source(fd.get());
  const auto map = ksym::LoadKallsyms(source, text);
  Check(map.has_value());
  Check(ksym::KernelSymbolMap::Borrow(map->bytes()).has_value());
  Check(map->symbol_count() == modules.size() + 1);
  // Real ones do not overlap, these may.
  if (modules.size() != 1) return;
  const auto [start, end] = modules.front().memory;
  if (start == end || (start <= kText && kText <= end)) return;
  ksym::SymbolNameBuffer buffer;
  const auto last = map->Find(end - 1, buffer);
  Check(last && last->start == start && last->size == end - start);
  Check(!map->Find(end, buffer));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t split = std::min(text.find('\0'), text.size());
  const Modules then = Parse(text.substr(0, split));
  const Modules now = Parse(text.substr(std::min(split + 1, text.size())));
  CheckChanges(then, now);
  // Making a table takes a hundred times as long as all the rest.
  if (!then.empty() && then.size() <= 3) {
    CheckTable(text.substr(0, split), then);
  }
  return 0;
}
