// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// Bytes of a name of a class, a method or a file that are read; longer ones are
// cut.
inline constexpr size_t kMaxHotspotSymbolBytes = 1024;
// Bytes of a table of lines; a method with more has no lines.
inline constexpr size_t kMaxHotspotLineBytes = 16384;

// It tells a method from one that takes its place when its class is unloaded,
// by the addresses of what it is made of. All of them are in the process's
// memory.
struct HotspotMethodIdentity {
  uint64_t code = 0;  // ConstMethod
  uint64_t constants = 0;
  uint64_t holder = 0;
  uint64_t name = 0;  // Symbol
  uint64_t class_name = 0;
  uint16_t bytecodes = 0;  // their bytes

  friend bool operator==(const HotspotMethodIdentity&,
                         const HotspotMethodIdentity&) = default;
};

// Nothing: there is none at that address. Five reads. The memory may change
// meanwhile: what is read is checked as far as it can be.
std::optional<HotspotMethodIdentity> ReadHotspotMethodIdentity(
    const Memory& memory, const HotspotLayout& layout, Address method);

struct HotspotMethod {
  std::string name;  // e.g. "com.example.Server.handle"
  std::string file;  // e.g. "Server.java"; empty: the class does not say
  // For HotspotLineAt(); empty: there is none, as of native methods.
  std::vector<std::byte> lines;
};

// Nothing: it is none. Some ten reads. It is that method if its identity is the
// same afterwards.
std::optional<HotspotMethod> ReadHotspotMethod(
    const Memory& memory, const HotspotLayout& layout,
    const HotspotMethodIdentity& identity);

// What a blob that is no method's is called, e.g. "StubRoutines (1)", of so
// many bytes at the most.
std::optional<std::string> ReadHotspotBlobName(const Memory& memory,
                                               const HotspotLayout& layout,
                                               Address blob, size_t most);

// "com.example.Server" for "com/example/Server". A class that has no name of
// its own, as a lambda's, loses what its name has of numbers and addresses:
// "Server$$Lambda" for "Server$$Lambda$14+0x0000000800c031f8".
std::string HotspotClassName(std::string_view symbol);

}  // namespace ksym
