// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/code_object.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "ksym/base/utf8.h"

namespace ksym {
namespace {

constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
constexpr uint32_t kReplacement = 0xfffd;  // of what is no character

template <typename T>
std::optional<T> ReadNumber(const Memory& memory, Address address) {
  T value = 0;
  if (!memory.Read(address, std::as_writable_bytes(std::span(&value, 1)))) {
    return std::nullopt;
  }
  return value;
}

// A str object: characters of 1, 2 or 4 bytes each, which is its kind.
std::optional<std::string> ReadText(const Memory& memory,
                                    const CpythonLayout& layout,
                                    Address address) {
  constexpr uint32_t kCompact = 0x20;
  constexpr uint32_t kAscii = 0x40;
  const auto length =
      ReadNumber<uint64_t>(memory, address + CpythonOffsets::kSize);
  const auto state =
      ReadNumber<uint32_t>(memory, address + CpythonOffsets::kTextState);
  if (!length || !state || (*state & kCompact) == 0) return std::nullopt;
  const uint32_t kind = *state >> 2 & 7u;
  if (kind != 1 && kind != 2 && kind != 4) return std::nullopt;
  const auto wanted =
      static_cast<size_t>(std::min<uint64_t>(*length, kMaxCpythonText));
  std::vector<std::byte> bytes(wanted * kind);
  const Address text = address + ((*state & kAscii) != 0 ? layout.text_ascii
                                                         : layout.text_other);
  const size_t got = memory.ReadSome(text, bytes) / kind;
  if (got == 0 && wanted > 0) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < got; ++i) {
    uint32_t c = 0;
    std::memcpy(&c, bytes.data() + i * kind, kind);
    AppendUtf8(IsCharacter(c) ? c : kReplacement, out);
  }
  if (got < *length) out += kEllipsis;
  return out;
}

// A bytes object; empty if it cannot be read as a whole.
std::string ReadBytes(const Memory& memory, Address address) {
  const auto size =
      ReadNumber<uint64_t>(memory, address + CpythonOffsets::kSize);
  if (!size || *size > kMaxCpythonLineTable) return {};
  std::string bytes(*size, '\0');
  if (!memory.Read(address + CpythonOffsets::kBytesData,
                   std::as_writable_bytes(std::span(bytes)))) {
    return {};
  }
  return bytes;
}

}  // namespace

Result<CpythonCode> ReadCpythonCode(const Memory& memory,
                                    const CpythonLayout& layout,
                                    Address address) {
  const auto pointer = [&](uint64_t offset) {
    return ReadNumber<uint64_t>(memory, address + offset);
  };
  const auto name_at = pointer(layout.code_name);
  const auto file_at = pointer(layout.code_file);
  const auto lines_at = pointer(layout.code_lines);
  const auto first_line =
      ReadNumber<uint32_t>(memory, address + layout.code_first_line);
  if (!name_at || !file_at || !lines_at || !first_line) {
    return Fail(ErrorCode::kNotFound, "the code object cannot be read");
  }
  auto name = ReadText(memory, layout, {*name_at});
  auto file = ReadText(memory, layout, {*file_at});
  if (!name || !file) {
    return Fail(ErrorCode::kNotFound, "the code's names cannot be read");
  }
  return CpythonCode{.name = std::move(*name),
                     .file = std::move(*file),
                     .first_line = *first_line,
                     .line_form = layout.lines,
                     .line_table = ReadBytes(memory, {*lines_at})};
}

}  // namespace ksym
