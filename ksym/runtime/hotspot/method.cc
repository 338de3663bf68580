// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/method.h"

#include <algorithm>
#include <array>
#include <span>

#include "ksym/runtime/hotspot/line_table.h"

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

// The constant of that index, which is a Symbol.
std::optional<uint64_t> ReadConstant(const Memory& memory,
                                     const HotspotLayout& layout,
                                     uint64_t constants, uint16_t index) {
  const auto length =
      ReadMember<int32_t>(memory, constants + layout.constants_length);
  if (!length || index == 0 || index >= *length) return std::nullopt;
  const auto constant = ReadMember<uint64_t>(
      memory, constants + layout.constants_bytes + uint64_t{8} * index);
  if (!constant) return std::nullopt;
  // The lowest bit says how the entry was resolved.
  return *constant & ~uint64_t{1};
}

std::optional<std::string> ReadSourceFile(
    const Memory& memory, const HotspotLayout& layout,
    const HotspotMethodIdentity& identity) {
  uint64_t at = 0;
  if (layout.constants_source_file != 0) {
    at = identity.constants + layout.constants_source_file;
  } else if (layout.klass_source_file != 0) {
    at = identity.holder + layout.klass_source_file;
  } else {
    return std::nullopt;
  }
  const auto index = ReadMember<uint16_t>(memory, at);
  if (!index) return std::nullopt;
  const auto symbol = ReadConstant(memory, layout, identity.constants, *index);
  return symbol ? ReadSymbol(memory, layout, *symbol) : std::nullopt;
}

// The table has no length: it is in what is left of the ConstMethod.
std::vector<std::byte> ReadLines(const Memory& memory,
                                 const HotspotLayout& layout,
                                 const HotspotMethodIdentity& identity) {
  constexpr uint16_t kHasLines = 1;
  constexpr uint64_t kWordBytes = 8;
  if (layout.const_method_flags == 0) return {};
  const auto flags =
      ReadMember<uint16_t>(memory, identity.code + layout.const_method_flags);
  const auto words =
      ReadMember<int32_t>(memory, identity.code + layout.const_method_size);
  if (!flags || !words || (*flags & kHasLines) == 0 || *words <= 0) return {};
  const uint64_t skipped =
      uint64_t{layout.const_method_bytes} + identity.bytecodes;
  const uint64_t bytes = kWordBytes * static_cast<uint64_t>(*words);
  if (bytes <= skipped) return {};
  // Other tables follow; this one may end long before the bound.
  std::vector<std::byte> lines(
      std::min<uint64_t>(bytes - skipped, kMaxHotspotLineBytes));
  lines.resize(memory.ReadSome({identity.code + skipped}, lines));
  lines.resize(HotspotLineTableBytes(lines, layout.numbers));
  lines.shrink_to_fit();
  return lines;
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

std::optional<HotspotMethodIdentity> ReadHotspotMethodIdentity(
    const Memory& memory, const HotspotLayout& layout, Address method) {
  const auto code =
      ReadMember<uint64_t>(memory, method.value + layout.method_const_method);
  if (!code) return std::nullopt;
  const auto constants =
      ReadMember<uint64_t>(memory, *code + layout.const_method_constants);
  const auto index =
      ReadMember<uint16_t>(memory, *code + layout.const_method_name);
  const auto bytecodes =
      ReadMember<uint16_t>(memory, *code + layout.const_method_code_size);
  if (!constants || !index || !bytecodes) return std::nullopt;
  const auto holder =
      ReadMember<uint64_t>(memory, *constants + layout.constants_holder);
  const auto name = ReadConstant(memory, layout, *constants, *index);
  if (!holder || !name) return std::nullopt;
  const auto class_name =
      ReadMember<uint64_t>(memory, *holder + layout.klass_name);
  if (!class_name) return std::nullopt;
  return HotspotMethodIdentity{.code = *code,
                               .constants = *constants,
                               .holder = *holder,
                               .name = *name,
                               .class_name = *class_name,
                               .bytecodes = *bytecodes};
}

std::optional<HotspotMethod> ReadHotspotMethod(
    const Memory& memory, const HotspotLayout& layout,
    const HotspotMethodIdentity& identity) {
  const auto name = ReadSymbol(memory, layout, identity.name);
  const auto class_name = ReadSymbol(memory, layout, identity.class_name);
  if (!name || !class_name) return std::nullopt;
  return HotspotMethod{
      .name = HotspotClassName(*class_name) + '.' + *name,
      .file = ReadSourceFile(memory, layout, identity).value_or(""),
      .lines = ReadLines(memory, layout, identity)};
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

}  // namespace ksym
