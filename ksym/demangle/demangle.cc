// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/demangle.h"

#include <libiberty/demangle.h>

#include "ksym/demangle/cpp_symbol.h"
#include "ksym/demangle/d_symbol.h"
#include "ksym/demangle/rust_v0.h"

namespace ksym {
namespace {

constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;

void Append(const char* text, size_t size, void* opaque) {
  static_cast<std::string*>(opaque)->append(text, size);
}

// Rust's older names look like C++ and end with a hash, whose length is 17.
// They have no references: one pass checks a name, another writes it, no longer
// than one and a half times as long.
std::string DemangleOldRust(const std::string& mangled) {
  if (mangled.find("17") == std::string::npos) return {};
  std::string text;
  text.reserve(mangled.size());
  const bool is_valid =
      rust_demangle_callback(mangled.c_str(), kOptions, Append, &text) != 0;
  return is_valid ? text : std::string();
}

// Empty when the name is not mangled or too long when it is written out.
std::string DemangleWhole(const std::string& mangled) {
  if (mangled.starts_with("_R")) return DemangleRustV0(mangled);
  if (mangled.starts_with("_D")) return DemangleD(mangled);
  if (!mangled.starts_with("_Z")) return {};
  std::string text = DemangleOldRust(mangled);
  return text.empty() ? DemangleCpp(mangled) : text;
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
