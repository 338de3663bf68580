// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/demangle.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <memory>

#include "ksym/demangle/rust_v0.h"

namespace ksym {
namespace {

constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;
// libiberty's own limit refuses names of more than 1,024 bytes, which templates
// reach. Within kMaxMangledBytes any nesting takes less than 1 MiB of stack.
constexpr int kCppOptions = kOptions | DMGL_NO_RECURSE_LIMIT;

// D's demangler returns its text whole, so what a back reference ("Q") can
// double has to be bounded beforehand.
constexpr size_t kMaxDBytes = 1024;
constexpr ptrdiff_t kMaxDBackReferences = 24;

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

struct Output {
  std::string text;
  std::jmp_buf give_up;
};

// libiberty cannot be told to stop, and a doubling name would go on for years
// with its output thrown away. It is C that owns nothing at this point.
void Append(const char* text, size_t size, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  if (size > kMaxDemangledBytes - output.text.size()) {
    std::longjmp(output.give_up, 1);
  }
  output.text.append(text, size);
}

// No local object may live across the jump.
bool Run(Demangler demangler, int options, const char* mangled,
         Output& output) {
  output.text.clear();
  if (setjmp(output.give_up) != 0) return false;
  return demangler(mangled, options, Append, &output) != 0;
}

std::string DemangleD(const std::string& mangled) {
  if (mangled.size() > kMaxDBytes ||
      std::count(mangled.begin(), mangled.end(), 'Q') > kMaxDBackReferences) {
    return {};
  }
  const std::unique_ptr<char, decltype(&std::free)> text(
      dlang_demangle(mangled.c_str(), kOptions), &std::free);
  return text == nullptr ? std::string() : std::string(text.get());
}

// Empty when the name is not mangled or too long when it is written out.
std::string DemangleWhole(const std::string& mangled) {
  if (mangled.starts_with("_R")) return DemangleRustV0(mangled);
  if (mangled.starts_with("_D")) return DemangleD(mangled);
  const bool is_cpp = mangled.starts_with("_Z") ||
                      mangled.starts_with("___Z");  // a block's invocation
  if (!is_cpp) return {};
  Output output;
  output.text.reserve(2 * mangled.size());
  // Rust's older names look like C++ and end with a hash, whose length is 17.
  // One pass checks such a name, another writes it.
  const bool may_be_rust = mangled.find("17") != std::string::npos;
  if ((may_be_rust &&
       Run(rust_demangle_callback, kOptions, mangled.c_str(), output)) ||
      Run(cplus_demangle_v3_callback, kCppOptions, mangled.c_str(), output)) {
    return std::move(output.text);
  }
  return {};
}

}  // namespace

std::string Demangle(std::string_view name) {
  if (name.size() > kMaxMangledBytes || !name.starts_with('_')) {
    return std::string(name);
  }
  const size_t at = name.find('@');
  std::string text = DemangleWhole(std::string(name.substr(0, at)));
  if (text.empty() || text.size() > kMaxDemangledBytes) {
    return std::string(name);
  }
  if (at != std::string_view::npos) text += name.substr(at);
  return text;
}

}  // namespace ksym
