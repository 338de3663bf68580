// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ksym/elf/elf_image.h"

namespace ksym {

// Linkage stubs of x86-64: the entries of .plt, .plt.sec and .plt.got, each of
// which jumps through a slot of the global offset table.

// Whether the file's stubs are of this kind.
bool HasPltStubs(const ElfImage& image);

// A stub's size in the section of that name with that code.
uint64_t PltStubSize(const ElfSection& section, std::string_view name,
                     std::span<const std::byte> code);

// The address of the slot that the stub at `address` jumps through; nothing for
// other code, such as the table's first entry.
std::optional<uint64_t> ParsePltStub(std::span<const std::byte> code,
                                     uint64_t address);

// Whether a relocation of that type says whose address is in a slot.
bool IsPltRelocation(uint64_t type);

}  // namespace ksym
