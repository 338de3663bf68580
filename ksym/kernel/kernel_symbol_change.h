// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ksym/base/address.h"

namespace ksym {

// A symbol that came or went while the kernel ran: a BPF program, a
// trampoline, a kprobe's slot.
struct KernelSymbolChange {
  enum class Kind : uint8_t { kAdded, kRemoved };
  Kind kind = Kind::kAdded;
  Address start;
  uint64_t size = 0;
  std::string name;
  std::string module;  // without brackets

  friend bool operator==(const KernelSymbolChange&,
                         const KernelSymbolChange&) = default;
};

}  // namespace ksym
