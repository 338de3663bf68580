// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// libiberty's.
struct demangle_component;  // NOLINT(readability-identifier-naming)

namespace ksym {

// Looks at components that libiberty may need to write one C++ name out. A
// component that stands in the text twice is looked at twice. None of 216,000
// names of libLLVM, libclang, libstdc++, node and our own tests takes more than
// 3,423.
inline constexpr uint64_t kMaxCppWork = 1'000'000;

// Pairs of a template and a reference to a template parameter. libiberty has
// 16 bytes of stack for each, and counts a component up to twice in both. The
// same names have at most 44.
inline constexpr uint64_t kMaxCppScopes = 8192;

// Whether libiberty can write `tree` within these bounds. It bounds neither
// itself: it looks for the pack of an expansion in all of the operand, where
// types of types double with each substitution, and writes nothing meanwhile.
// The tree is one of cplus_demangle_v3_components, which made room for `count`
// components at `components`. Linear in their number.
bool CanWriteTree(const demangle_component* tree,
                  const demangle_component* components, size_t count);

}  // namespace ksym
