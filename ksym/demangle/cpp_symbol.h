// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ksym {

// The source-level name of a C++ symbol (Itanium ABI, "_Z..."), of at most
// kMaxMangledBytes. Empty where it is none, where its text is longer than
// kMaxDemangledBytes, or where it takes more than the bounds of cpp_tree.h.
// Thread-safe; at most 1 MiB of stack.
std::string DemangleCpp(const std::string& mangled);

}  // namespace ksym
