// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/naming/resolve_options.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/kernel/kernel_timeline.h"
#include "ksym/symbolizer.h"

namespace profd {

// Names addresses of the kernel. Borrows the kernel's symbols. Not thread-safe.
class KernelFrames {
 public:
  explicit KernelFrames(const ResolveOptions& options) : options_(options) {}

  // The kernel's symbols from now on.
  void SetSymbols(const ksym::KernelTimeline& symbols);
  // Without them frames are "[kernel]", for this reason.
  void SetNoSymbols(ksym::Unresolved reason) {
    symbols_ = nullptr;
    no_symbols_reason_ = reason;
  }

  struct Named {
    FrameId id = 0;
    bool is_entry = false;  // an interrupt begins there
  };
  // Adds the frame of an address; `lookup` is the one that is looked up for it.
  Named Add(uint64_t address, ksym::Address lookup, ProfileBuilder& builder);
  // Whether it is the kernel's own function of one of these names.
  bool IsFunction(ksym::Address lookup,
                  std::span<const std::string_view> names);
  // Which interrupt the kernel's stack is of; empty: that is not known.
  std::string InterruptOf(const PackedStack& stack);

 private:
  void NameFrame(const ksym::KernelSymbol& symbol, Frame& frame,
                 ProfileBuilder& builder) const;
  void SetOffset(const ksym::KernelSymbol& symbol, ksym::Address lookup,
                 Frame& frame) const;

  const ResolveOptions options_;
  const ksym::KernelTimeline* symbols_ = nullptr;
  std::optional<ksym::Address> text_;  // of _stext
  ksym::Unresolved no_symbols_reason_ = ksym::Unresolved::kNoPermission;
  ksym::SymbolNameBuffer name_buffer_;
};

}  // namespace profd
