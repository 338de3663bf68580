// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/cpp_symbol.h"

#include <libiberty/demangle.h>

#include <csetjmp>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include "ksym/demangle/cpp_tree.h"
#include "ksym/demangle/demangle.h"

namespace ksym {
namespace {

// libiberty's own limit refuses names of more than 1,024 bytes, which templates
// reach. Within kMaxMangledBytes any nesting takes less than 1 MiB of stack.
constexpr int kCppOptions = DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT;

struct Output {
  std::string text;
  std::jmp_buf give_up;
};

// libiberty cannot be told to stop, and a doubling name would go on for years
// with its output thrown away. It is C that owns nothing at this point.
void AppendBounded(const char* text, size_t size, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  if (size > kMaxDemangledBytes - output.text.size()) {
    std::longjmp(output.give_up, 1);
  }
  output.text.append(text, size);
}

// No local object may live across the jump.
bool Write(demangle_component* tree, Output& output) {
  if (setjmp(output.give_up) != 0) return false;
  return cplus_demangle_print_callback(kCppOptions, tree, AppendBounded,
                                       &output) != 0;
}

// How the scope of a name that is not resolved yet is spelled: "sr1AE1x", or by
// compilers before GCC 4.5 "sr1A1x".
enum class ScopeSpelling : unsigned char { kOld = 0, kNew = 1 };

using Memory = std::unique_ptr<void, decltype(&std::free)>;

// cplus_demangle_v3_components of libiberty 2.40 reads the spelling from a
// local variable that it does not set, so it is left on the stack for it. Were
// it to read something else, such names would stay mangled and others be the
// same.
__attribute__((noinline, no_sanitize("address"))) void LeaveOnStack(
    ScopeSpelling spelling) {
  volatile unsigned char bytes[1024];
  for (auto& byte : bytes) byte = static_cast<unsigned char>(spelling);
}

// The tree and what owns it; null where the name is not valid.
__attribute__((noinline)) demangle_component* Parse(const std::string& mangled,
                                                    Memory& owner) {
  void* memory = nullptr;
  demangle_component* tree =
      cplus_demangle_v3_components(mangled.c_str(), kCppOptions, &memory);
  owner.reset(memory);
  return tree;
}

demangle_component* ParseAnySpelling(const std::string& mangled,
                                     Memory& owner) {
  if (mangled.find("sr") == mangled.npos) return Parse(mangled, owner);
  LeaveOnStack(ScopeSpelling::kNew);
  demangle_component* tree = Parse(mangled, owner);
  if (tree != nullptr) return tree;
  LeaveOnStack(ScopeSpelling::kOld);
  return Parse(mangled, owner);
}

}  // namespace

std::string DemangleCpp(const std::string& mangled) {
  Memory owner(nullptr, &std::free);
  demangle_component* tree = ParseAnySpelling(mangled, owner);
  // libiberty has room for two components for each byte.
  if (tree == nullptr ||
      !CanWriteTree(tree, static_cast<const demangle_component*>(owner.get()),
                    2 * mangled.size())) {
    return {};
  }
  Output output;
  output.text.reserve(2 * mangled.size());
  return Write(tree, output) ? std::move(output.text) : std::string();
}

}  // namespace ksym
