// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/x86_64/plt_stub.h"

#include <elf.h>

#include <array>
#include <cstring>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

constexpr std::array<uint8_t, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};

template <size_t kSize>
bool StartsWith(std::span<const std::byte> code,
                const std::array<uint8_t, kSize>& bytes) {
  return code.size() >= kSize &&
         std::memcmp(code.data(), bytes.data(), kSize) == 0;
}

}  // namespace

bool HasPltStubs(const ElfImage& image) {
  return image.machine() == EM_X86_64 && image.elf_class() == ElfClass::k64;
}

// .plt.got's stubs are 8 bytes unless they begin with endbr64; sh_entsize is
// not always there.
uint64_t PltStubSize(const ElfSection& section, std::string_view name,
                     std::span<const std::byte> code) {
  if (section.entry_size == 8 || section.entry_size == 16) {
    return section.entry_size;
  }
  return name == ".plt.got" && !StartsWith(code, kEndbr64) ? 8 : 16;
}

// "jmp *disp32(%rip)", perhaps behind endbr64, mold's "mov $index, %r11d" and a
// bnd prefix.
std::optional<uint64_t> ParsePltStub(std::span<const std::byte> code,
                                     uint64_t address) {
  constexpr std::array<uint8_t, 2> kMoveToR11 = {0x41, 0xbb};
  constexpr size_t kMoveBytes = kMoveToR11.size() + sizeof(uint32_t);
  constexpr std::byte kBnd{0xf2};
  size_t at = StartsWith(code, kEndbr64) ? kEndbr64.size() : 0;
  if (StartsWith(code.subspan(at), kMoveToR11)) at += kMoveBytes;
  if (at < code.size() && code[at] == kBnd) ++at;
  if (at > code.size()) return std::nullopt;
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
