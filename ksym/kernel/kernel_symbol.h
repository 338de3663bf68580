// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "ksym/base/address.h"

namespace ksym {

inline constexpr uint64_t kMaxKernelAddress =
    std::numeric_limits<uint64_t>::max();
// The smallest one of every architecture.
inline constexpr uint64_t kKernelPageBytes = 4096;

// One symbol of the kernel. The views live in the SymbolNameBuffer and in the
// table that answered: until the buffer's next use and the table's end.
struct KernelSymbol {
  std::string_view name;
  std::string_view module;  // without brackets; empty: the kernel image itself
  Address start;
  uint64_t size = 0;    // bytes up to the next symbol or the section's end
  uint64_t offset = 0;  // of the looked-up address from start
  char type = 0;        // nm(1) letter; upper case: global
  // The address lies in the padding before the function (its `__pfx_` symbol),
  // and start, size and offset are the padding's.
  bool in_prefix = false;
};

enum class SymbolKinds : uint8_t { kText, kAll };
enum class PrefixNames : uint8_t { kFold, kKeep };

// What a lookup answers with.
struct SymbolQuery {
  // kText: functions only; data symbols still end the function before them.
  SymbolKinds kinds = SymbolKinds::kText;
  // kFold: padding before X is named X, kKeep: it is named `__pfx_X`.
  PrefixNames prefix_names = PrefixNames::kFold;
};

// The caller's room for one name. It grows to the longest name of the table
// at its first use; later lookups allocate nothing. Not thread-safe: one per
// thread.
class SymbolNameBuffer {
 public:
  // At least `size` writable bytes; what was there before is lost.
  char* Prepare(size_t size) {
    if (size > capacity_) {
      bytes_ = std::make_unique_for_overwrite<char[]>(size);
      capacity_ = size;
    }
    return bytes_.get();
  }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
};

}  // namespace ksym
