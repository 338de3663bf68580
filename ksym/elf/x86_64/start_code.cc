// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/x86_64/start_code.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

using std::string_view_literals::operator""sv;

// Takes the code apart from its begin on.
class CodeText {
 public:
  CodeText(std::string_view code, uint64_t address)
      : code_(code), address_(address) {}

  bool Skip(std::string_view bytes) {
    if (!code_.substr(at_).starts_with(bytes)) return false;
    at_ += bytes.size();
    return true;
  }
  // Those bytes and any four behind them.
  bool SkipWithWord(std::string_view bytes) {
    int32_t word = 0;
    return Take(bytes, word);
  }
  // Those bytes and a number of four behind them.
  bool Take(std::string_view bytes, int32_t& number) {
    const std::string_view rest = code_.substr(at_);
    if (!rest.starts_with(bytes) ||
        rest.size() < bytes.size() + sizeof(number)) {
      return false;
    }
    std::memcpy(&number, rest.data() + bytes.size(), sizeof(number));
    at_ += bytes.size() + sizeof(number);
    return true;
  }
  uint64_t address() const { return address_ + at_; }

 private:
  const std::string_view code_;
  const uint64_t address_;
  size_t at_ = 0;
};

// The functions that glibc before 2.34 had in each program, and 0 since.
bool SkipInitAndFini(CodeText& code) {
  return code.Skip("\x45\x31\xc0\x31\xc9"sv) ||   // xor %r8d, %r8d; %ecx
         (code.SkipWithWord("\x49\xc7\xc0"sv) &&  // mov $fini, %r8
          code.SkipWithWord("\x48\xc7\xc1"sv)) ||
         (code.SkipWithWord("\x4c\x8d\x05"sv) &&  // lea fini(%rip), %r8
          code.SkipWithWord("\x48\x8d\x0d"sv));
}

std::optional<uint64_t> TakeMain(CodeText& code) {
  int32_t number = 0;
  // "lea main(%rip), %rdi", or "mov $main, %rdi", which extends the sign.
  if (code.Take("\x48\x8d\x3d"sv, number)) {
    return code.address() + static_cast<uint64_t>(int64_t{number});
  }
  if (code.Take("\x48\xc7\xc7"sv, number) && number > 0) {
    return static_cast<uint64_t>(number);
  }
  return std::nullopt;
}

// "call *slot(%rip)", or directly in a static program, and "hlt".
bool EndsInCall(CodeText& code) {
  return (code.SkipWithWord("\xff\x15"sv) || code.SkipWithWord("\x67\xe8"sv) ||
          code.SkipWithWord("\xe8"sv)) &&
         code.Skip("\xf4"sv);
}

std::optional<uint64_t> MainOf(std::string_view bytes, uint64_t address) {
  CodeText code(bytes, address);
  code.Skip("\xf3\x0f\x1e\xfa"sv);  // endbr64
  // xor %ebp, %ebp; mov %rdx, %r9; pop %rsi; mov %rsp, %rdx; and $-16, %rsp;
  // push %rax; push %rsp
  if (!code.Skip("\x31\xed\x49\x89\xd1\x5e\x48\x89\xe2\x48\x83\xe4\xf0"
                 "\x50\x54"sv) ||
      !SkipInitAndFini(code)) {
    return std::nullopt;
  }
  const auto main = TakeMain(code);
  if (!main || !EndsInCall(code)) return std::nullopt;
  return main;
}

const ElfSegment* FindCode(const ElfImage& image, uint64_t address) {
  const auto found =
      std::ranges::find_if(image.segments(), [&](const ElfSegment& segment) {
        return segment.executable && address >= segment.address.value &&
               address - segment.address.value < segment.file_size;
      });
  return found == image.segments().end() ? nullptr : &*found;
}

}  // namespace

std::optional<StartCode> FindStartCode(const ByteSource& source,
                                       const ElfImage& image) {
  constexpr size_t kMaxBytes = 64;
  Elf64_Ehdr header = {};
  if (image.machine() != EM_X86_64 || image.elf_class() != ElfClass::k64 ||
      !source.ReadAt(0, std::as_writable_bytes(std::span(&header, 1)))) {
    return std::nullopt;
  }
  const ElfSegment* segment = FindCode(image, header.e_entry);
  if (segment == nullptr) return std::nullopt;
  const uint64_t distance = header.e_entry - segment->address.value;
  std::array<char, kMaxBytes> bytes = {};
  const size_t size =
      std::min<uint64_t>(segment->file_size - distance, bytes.size());
  const auto offset = CheckedAdd(segment->file_offset.value, distance);
  if (!offset ||
      !source.ReadAt(*offset,
                     std::as_writable_bytes(std::span(bytes)).first(size))) {
    return std::nullopt;
  }
  const auto main = MainOf({bytes.data(), size}, header.e_entry);
  if (!main || FindCode(image, *main) == nullptr) return std::nullopt;
  return StartCode{.start = {header.e_entry}, .main = {*main}};
}

}  // namespace ksym
