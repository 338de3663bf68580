#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "daemon/profile/raw_file.h"
#include "ksym/kernel/kernel_symbol_source.h"

namespace profd {

// The kernel's symbols, or why there are none: without them a profile is
// still of use, so that is no failure.
struct KernelNames {
  std::optional<ksym::KernelSymbolSource> symbols;
  KernelSymbolsState state = KernelSymbolsState::kPresent;
  std::string warning;  // what the user should know; empty: nothing

  const ksym::KernelSymbolSource* source() const {
    return symbols ? &*symbols : nullptr;
  }
};

// The running kernel's, from /proc/kallsyms; 30 to 50 ms.
KernelNames LoadRunningKernelNames();

// What a raw capture carries.
KernelNames KernelNamesOfCapture(const RawCapture& capture);

}  // namespace profd
