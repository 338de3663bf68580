// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/hotspot/numbers.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// The most bytes of what an nmethod says of its code, and of the calls that are
// inlined into each other at one place.
inline constexpr size_t kMaxHotspotScopeBytes = size_t{1} << 20;
inline constexpr size_t kMaxHotspotInlined = 64;

// A call at a place in compiled code.
struct HotspotScope {
  Address method;
  // The bytecode that is at it; nothing: none, as where a method is entered.
  std::optional<uint32_t> bytecode;

  friend bool operator==(const HotspotScope&, const HotspotScope&) = default;
};

// Innermost first; the last one is the method that was compiled.
struct HotspotScopes {
  std::vector<HotspotScope> scopes;
  // The JVM describes that very place, as it does those behind calls; else
  // these are the calls of the next place that it describes, and others may be
  // at work.
  bool is_exact = false;
};

// A copy of all that an nmethod says of its code.
class HotspotCompiledCode {
 public:
  // kNotFound: another one is there by now, by the low 16 bits of its compile
  // id, or it went meanwhile. kUnsupported: the layout has no scopes. kLimit:
  // there is too much of it. kCorrupt: it cannot be. Some eight reads.
  static Result<HotspotCompiledCode> Read(const Memory& memory,
                                          const HotspotLayout& layout,
                                          Address nmethod, uint16_t compile_id);

  Address method() const { return method_; }
  size_t bytes() const;
  // The methods that are at work at so many bytes from the code's begin; for a
  // caller's frame it is the byte before the address that it is returned to.
  // kNotFound: nothing is described there or behind it, as in what follows the
  // code proper. kCorrupt: the scopes cannot be. kLimit: there are more than
  // kMaxHotspotInlined.
  Result<HotspotScopes> ScopesAt(uint32_t place) const;

 private:
  struct Place {
    int32_t code = 0;
    int32_t scope = 0;
  };

  Address method_;
  HotspotNumbers numbers_ = HotspotNumbers::kAnyByte;
  std::vector<Place> places_;  // ascending by code
  std::vector<std::byte> scopes_;
  std::vector<uint64_t> methods_;
};

// The method that an nmethod is compiled from; nothing: it has another id than
// the low 16 bits of that one by now.
std::optional<Address> ReadHotspotMethodOf(const Memory& memory,
                                           const HotspotLayout& layout,
                                           Address nmethod,
                                           uint16_t compile_id);

}  // namespace ksym
