// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/x86_64/plt_stub.h"

#include <elf.h>

#include <array>
#include <cstring>

#include "ksym/base/byte_reader.h"

namespace ksym {

bool HasPltStubs(const ElfImage& image) {
  return image.machine() == EM_X86_64 && image.elf_class() == ElfClass::k64;
}

// .plt.got's stubs are 8 bytes unless they begin with endbr64, which its
// sh_entsize says; .plt's sh_entsize is not always there.
uint64_t PltStubSize(const ElfSection& section, std::string_view name) {
  if (section.entry_size == 8 || section.entry_size == 16) {
    return section.entry_size;
  }
  return name == ".plt.got" ? 8 : 16;
}

// "jmp *disp32(%rip)", perhaps behind endbr64 and a bnd prefix.
std::optional<uint64_t> ParsePltStub(std::span<const std::byte> code,
                                     uint64_t address) {
  constexpr std::array<uint8_t, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};
  constexpr std::byte kBnd{0xf2};
  size_t at = 0;
  if (code.size() >= kEndbr64.size() &&
      std::memcmp(code.data(), kEndbr64.data(), kEndbr64.size()) == 0) {
    at = kEndbr64.size();
  }
  if (at < code.size() && code[at] == kBnd) ++at;
  ByteReader in(code.subspan(at));
  if (in.Read<uint8_t>() != 0xff || in.Read<uint8_t>() != 0x25) {
    return std::nullopt;
  }
  const auto distance = static_cast<int32_t>(in.Read<uint32_t>());
  if (!in.ok()) return std::nullopt;
  return address + at + 6 + static_cast<uint64_t>(int64_t{distance});
}

bool IsPltRelocation(uint64_t type) {
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

}  // namespace ksym
