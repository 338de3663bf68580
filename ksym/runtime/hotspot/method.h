// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/address.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// Bytes of a name of a class or of a method that are read; longer ones are cut.
inline constexpr size_t kMaxHotspotSymbolBytes = 1024;

// The name of the method at that address, e.g. "com.example.Server.handle".
// Nothing: it is none, or not the one that has its bytecodes at `const_method`,
// as one that was unloaded is. Some eight reads. The memory may change
// meanwhile: what is read is checked as far as it can be.
std::optional<std::string> ReadHotspotMethodName(const Memory& memory,
                                                 const HotspotLayout& layout,
                                                 Address method);

// The method that an nmethod is compiled from; nothing: it has another id than
// the low 16 bits of that one by now.
std::optional<Address> ReadHotspotMethodOf(const Memory& memory,
                                           const HotspotLayout& layout,
                                           Address nmethod,
                                           uint16_t compile_id);

// The low 16 bits of what tells a method's bytecodes from others'.
std::optional<uint16_t> ReadHotspotMethodTag(const Memory& memory,
                                             const HotspotLayout& layout,
                                             Address method);

// What a blob that is no method's is called, e.g. "StubRoutines (1)", of so
// many bytes at the most.
std::optional<std::string> ReadHotspotBlobName(const Memory& memory,
                                               const HotspotLayout& layout,
                                               Address blob, size_t most);

// "com.example.Server" for "com/example/Server". Of a class that has no name of
// its own, as a lambda's, what its name has of numbers and addresses goes:
// "Server$$Lambda" for "Server$$Lambda$14+0x0000000800c031f8".
std::string HotspotClassName(std::string_view symbol);

}  // namespace ksym
