// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/method.h"

#include <algorithm>
#include <array>
#include <span>

namespace ksym {
namespace {

template <typename T>
std::optional<T> ReadMember(const Memory& memory, uint64_t address) {
  T value = {};
  if (!memory.Read({address}, std::as_writable_bytes(std::span(&value, 1)))) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> ReadSymbol(const Memory& memory,
                                      const HotspotLayout& layout,
                                      uint64_t symbol) {
  const auto length =
      ReadMember<uint16_t>(memory, symbol + layout.symbol_length);
  if (!length || *length == 0) return std::nullopt;
  std::string text(std::min<size_t>(*length, kMaxHotspotSymbolBytes), '\0');
  if (!memory.Read({symbol + layout.symbol_body},
                   std::as_writable_bytes(std::span(text)))) {
    return std::nullopt;
  }
  // Names are UTF-8 without control characters; "<init>" and "a$b" are some.
  const auto is_control = [](char c) { return c >= 0 && c < ' '; };
  if (std::ranges::any_of(text, is_control)) return std::nullopt;
  return text;
}

}  // namespace

std::string HotspotClassName(std::string_view symbol) {
  // Where a hidden class has the address of what loaded it.
  symbol = symbol.substr(0, symbol.find("+0x"));
  symbol = symbol.substr(0, symbol.find("/0x"));
  constexpr std::string_view kLambda = "$$Lambda";
  const size_t lambda = symbol.find(kLambda);
  if (lambda != symbol.npos) symbol = symbol.substr(0, lambda + kLambda.size());
  std::string name(symbol);
  std::ranges::replace(name, '/', '.');
  return name;
}

std::optional<std::string> ReadHotspotMethodName(const Memory& memory,
                                                 const HotspotLayout& layout,
                                                 Address method) {
  const auto code =
      ReadMember<uint64_t>(memory, method.value + layout.method_const_method);
  if (!code) return std::nullopt;
  const auto constants =
      ReadMember<uint64_t>(memory, *code + layout.const_method_constants);
  const auto index =
      ReadMember<uint16_t>(memory, *code + layout.const_method_name);
  if (!constants || !index) return std::nullopt;
  const auto length =
      ReadMember<int32_t>(memory, *constants + layout.constants_length);
  const auto holder =
      ReadMember<uint64_t>(memory, *constants + layout.constants_holder);
  if (!length || !holder || *index == 0 || *index >= *length) {
    return std::nullopt;
  }
  const auto name = ReadMember<uint64_t>(
      memory, *constants + layout.constants_bytes + uint64_t{8} * *index);
  const auto class_name =
      ReadMember<uint64_t>(memory, *holder + layout.klass_name);
  if (!name || !class_name) return std::nullopt;
  // The lowest bit says how the entry was resolved.
  const auto method_text = ReadSymbol(memory, layout, *name & ~uint64_t{1});
  const auto class_text = ReadSymbol(memory, layout, *class_name);
  if (!method_text || !class_text) return std::nullopt;
  return HotspotClassName(*class_text) + '.' + *method_text;
}

std::optional<Address> ReadHotspotMethodOf(const Memory& memory,
                                           const HotspotLayout& layout,
                                           Address nmethod,
                                           uint16_t compile_id) {
  const auto id =
      ReadMember<uint32_t>(memory, nmethod.value + layout.nmethod_compile_id);
  const auto method =
      ReadMember<uint64_t>(memory, nmethod.value + layout.nmethod_method);
  if (!id || !method || (*id & 0xffff) != compile_id || *method == 0) {
    return std::nullopt;
  }
  return Address{*method};
}

std::optional<std::string> ReadHotspotBlobName(const Memory& memory,
                                               const HotspotLayout& layout,
                                               Address blob, size_t most) {
  const auto at = ReadMember<uint64_t>(memory, blob.value + layout.blob_name);
  if (!at) return std::nullopt;
  std::string text(most, '\0');
  text.resize(memory.ReadSome({*at}, std::as_writable_bytes(std::span(text))));
  text.resize(std::min(text.find('\0'), text.size()));
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (text.empty() || !std::ranges::all_of(text, is_plain)) return std::nullopt;
  return text;
}

std::optional<uint16_t> ReadHotspotMethodTag(const Memory& memory,
                                             const HotspotLayout& layout,
                                             Address method) {
  const auto code =
      ReadMember<uint64_t>(memory, method.value + layout.method_const_method);
  if (!code) return std::nullopt;
  return static_cast<uint16_t>(*code >> 3);
}

}  // namespace ksym
