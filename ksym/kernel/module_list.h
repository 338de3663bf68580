// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/kernel/kernel_symbol_source.h"

namespace ksym {

// A part of the kernel's memory; half-open.
struct KernelRange {
  Address start;
  Address end;

  friend bool operator==(const KernelRange&, const KernelRange&) = default;
};

// A line of /proc/modules:
//   ext4 983040 2 - Live 0xffffffffc0555000
struct KernelModule {
  std::string name;
  // Where its code is at the most. Since Linux 6.4 a module has several areas,
  // of which the first has its text; the size of all is listed (m_show() in
  // kernel/module/procfs.c). So this ends where another module begins.
  KernelRange memory;
  uint64_t bytes = 0;  // that are listed
  // Its first function has not returned; then some of its memory will go.
  bool is_loading = false;

  friend bool operator==(const KernelModule&, const KernelModule&) = default;
};

// Whether what two listings have is one module, loaded once, as far as they can
// tell.
bool IsSameModule(const KernelModule& a, const KernelModule& b);

// Whether something that a table of symbols lists like a module is one: not
// "bpf" and "__builtin__...", nor "", the kernel itself.
bool IsModuleName(std::string_view module);

// The modules whose addresses the text shows; other lines are skipped.
std::vector<KernelModule> ParseModules(std::string_view text);

// The modules that a table has, of those that were there before it was read and
// of those after it: of a module that came meanwhile it has symbols or not.
// Cost: nothing, or where one came a pass over the table, some 10 ms.
std::vector<KernelModule> ModulesOfTable(std::vector<KernelModule> before,
                                         const std::vector<KernelModule>& after,
                                         const KernelSymbolSource& table);

// Tells where a table of symbols that was read a while ago may be wrong by now,
// because a module came or went. Value, not thread-safe.
class ModuleList {
 public:
  // As of the time when the table was read.
  explicit ModuleList(std::vector<KernelModule> modules)
      : modules_(std::move(modules)), is_gone_(modules_.size()) {}
  ModuleList() = default;

  // The memory of modules that the table does not know.
  std::vector<KernelRange> Newcomers(
      const std::vector<KernelModule>& now) const;
  // `now`: the modules that are there at the end of an interval. The answer:
  // the memory of those that the table does not know, and of those that were
  // gone at the end of an earlier interval. One that went in this interval is
  // not in it, as the interval's samples are still its own.
  std::vector<KernelRange> EndInterval(const std::vector<KernelModule>& now);

 private:
  std::vector<KernelModule> modules_;
  std::vector<bool> is_gone_;  // by module: at the end of an earlier interval
};

}  // namespace ksym
