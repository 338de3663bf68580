// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace ksym {

// A 64-bit position whose kind is part of its type: the field's oldest bug is
// to look an address of one kind up in a table of another.
template <typename Tag>
struct Position {
  uint64_t value = 0;

  friend auto operator<=>(Position, Position) = default;
  friend Position operator+(Position p, uint64_t n) { return {p.value + n}; }
  friend Position operator-(Position p, uint64_t n) { return {p.value - n}; }
  // Distance in bytes; wraps like the integers do.
  friend uint64_t operator-(Position a, Position b) {
    return a.value - b.value;
  }
};

// Where something is at run time, in a process's or the kernel's memory.
using Address = Position<struct AddressTag>;
// A byte's place in a file.
using FileOffset = Position<struct FileOffsetTag>;
// A virtual address as an ELF file's own headers and symbols give it.
using ElfAddress = Position<struct ElfAddressTag>;

}  // namespace ksym

template <typename Tag>
struct std::hash<ksym::Position<Tag>> {
  size_t operator()(ksym::Position<Tag> p) const noexcept {
    return std::hash<uint64_t>()(p.value);
  }
};
