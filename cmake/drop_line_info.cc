// SPDX-License-Identifier: Apache-2.0
// drop_line_info OBJECT: takes the lines of source code out of a BPF object's
// .BTF.ext, in place. The kernel shows them in the verifier's log only; they
// are two fifths of the object, which libbpf copies whenever it is loaded.
// Types of functions and CO-RE's relocations stay. The layout is that of struct
// btf_ext_header (Documentation/bpf/btf.rst of Linux).

#include <fcntl.h>
#include <libelf.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

constexpr uint16_t kBtfMagic = 0xeb9f;

struct Part {
  uint32_t offset;  // behind the header
  uint32_t bytes;
};
struct Header {
  uint16_t magic;
  uint8_t version;
  uint8_t flags;
  uint32_t header_bytes;
  Part functions;
  Part lines;
  Part relocations;
};

int Fail(const char* path, const char* what) {
  std::fprintf(stderr, "drop_line_info: %s: %s\n", path, what);
  return 1;
}

// False: the section is none that this knows.
bool DropLines(Elf_Data& data) {
  Header header;
  if (data.d_size < sizeof(header)) return false;
  auto* const bytes = static_cast<char*>(data.d_buf);
  std::memcpy(&header, bytes, sizeof(header));
  const auto end = [](const Part& part) {
    return uint64_t{part.offset} + part.bytes;
  };
  const Part lines = header.lines;
  // The compiler writes the three in this order.
  if (header.magic != kBtfMagic || header.header_bytes < sizeof(header) ||
      end(header.functions) != lines.offset ||
      end(lines) != header.relocations.offset ||
      header.header_bytes + end(header.relocations) != data.d_size) {
    return false;
  }
  std::memmove(bytes + header.header_bytes + lines.offset,
               bytes + header.header_bytes + header.relocations.offset,
               header.relocations.bytes);
  header.lines.bytes = 0;
  header.relocations.offset = lines.offset;
  std::memcpy(bytes, &header, sizeof(header));
  data.d_size -= lines.bytes;
  return true;
}

Elf_Scn* FindSection(Elf* elf, std::string_view wanted) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return nullptr;
  for (Elf_Scn* section = nullptr;
       (section = elf_nextscn(elf, section)) != nullptr;) {
    const Elf64_Shdr* const header = elf64_getshdr(section);
    if (header == nullptr) continue;
    const char* const name = elf_strptr(elf, names, header->sh_name);
    if (name != nullptr && name == wanted) return section;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: drop_line_info OBJECT\n", stderr);
    return 2;
  }
  elf_version(EV_CURRENT);
  const int fd = ::open(argv[1], O_RDWR | O_CLOEXEC);
  if (fd < 0) return Fail(argv[1], std::strerror(errno));
  Elf* const elf = elf_begin(fd, ELF_C_RDWR, nullptr);
  Elf_Scn* const section = elf ? FindSection(elf, ".BTF.ext") : nullptr;
  if (section == nullptr) return Fail(argv[1], "has no section .BTF.ext");
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr || !DropLines(*data)) {
    return Fail(argv[1], "its .BTF.ext has an unknown layout");
  }
  elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
  const bool is_written = elf_update(elf, ELF_C_WRITE) >= 0;
  elf_end(elf);
  ::close(fd);
  return is_written ? 0 : Fail(argv[1], elf_errmsg(-1));
}
