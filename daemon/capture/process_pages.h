// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "daemon/capture/foreign_memory.h"
#include "ksym/base/address.h"
#include "ksym/runtime/memory.h"

namespace profd {

// Memory of one process at a time, which may be going on: pages that were read
// are kept, so that objects beside each other take one call of the kernel. Not
// thread-safe.
class ProcessPages final : public ksym::Memory {
 public:
  // So many pages are kept, 1 MiB; with more all are forgotten.
  static constexpr size_t kMaxPages = 256;

  // Forgets what was read.
  void Begin(uint32_t pid);
  size_t ReadSome(ksym::Address address,
                  std::span<std::byte> out) const override;

 private:
  static constexpr uint64_t kPageBytes = 4096;
  struct Page {
    size_t size = 0;  // that could be read; 0: nothing
    std::array<std::byte, kPageBytes> bytes;
  };
  const Page& PageOf(uint64_t number) const;

  uint32_t pid_ = 0;
  mutable ForeignMemory memory_;
  mutable std::unordered_map<uint64_t, Page> pages_;
};

}  // namespace profd
