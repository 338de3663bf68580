// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/build_id_note.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

std::string FindBuildIdNote(std::string_view notes) {
  constexpr uint32_t kBuildIdType = 3;  // NT_GNU_BUILD_ID
  ByteReader in(std::as_bytes(std::span(notes)));
  // Both parts of a note are padded to 4 bytes (System V ABI, "Note Section").
  const auto padded = [](uint32_t size) {
    return (uint64_t{size} + 3) & ~3ull;
  };
  while (in.ok() && in.remaining() > 0) {
    const auto name_size = in.Read<uint32_t>();
    const auto size = in.Read<uint32_t>();
    const auto type = in.Read<uint32_t>();
    if (padded(name_size) + size > in.remaining()) break;
    const std::string_view bytes = notes.substr(in.offset());
    const std::string_view content = bytes.substr(padded(name_size), size);
    if (type == kBuildIdType && size <= kMaxBuildIdBytes &&
        bytes.starts_with(std::string_view("GNU\0", 4)) && name_size == 4) {
      return ToHex(content);
    }
    in.ReadBytes(
        std::min<uint64_t>(padded(name_size) + padded(size), in.remaining()));
  }
  return {};
}

}  // namespace ksym
