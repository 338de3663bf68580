// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ksym {

// ELFCOMPRESS_ZSTD, which <elf.h> of glibc 2.36 does not have yet.
inline constexpr uint32_t kTestZstd = 2;

struct TestSymbol {
  std::string name;
  uint64_t value = 0;
  uint64_t size = 0;
  uint8_t type = STT_FUNC;
  uint8_t binding = STB_GLOBAL;
  uint16_t section = 1;  // .text
};

// What a test's ELF file is made of. All sections are in this order: null,
// .text, .note.gnu.build-id, .symtab, .strtab, .dynsym, .dynstr, the extra one,
// .shstrtab.
struct TestElf {
  uint64_t text_address = 0x401000;
  uint64_t text_offset = 0x1000;
  uint64_t text_size = 0x1000;
  std::vector<TestSymbol> symbols;
  std::vector<TestSymbol> dynamic_symbols;
  std::string build_id = "\x01\x02\xab\xcd";
  // 0, or the ch_type of SHF_COMPRESSED .symtab and .strtab: ELFCOMPRESS_ZLIB
  // or kTestZstd.
  uint32_t compression = 0;
  // A section of any kind behind .dynstr, if it has a name.
  std::string extra_name;
  std::string extra_bytes;
};

// Types of one ELF class.
struct Elf64Types {
  using Ehdr = Elf64_Ehdr;
  using Phdr = Elf64_Phdr;
  using Shdr = Elf64_Shdr;
  using Sym = Elf64_Sym;
  using Chdr = Elf64_Chdr;
  static constexpr uint8_t kClass = ELFCLASS64;
  static constexpr uint16_t kMachine = EM_X86_64;
};
struct Elf32Types {
  using Ehdr = Elf32_Ehdr;
  using Phdr = Elf32_Phdr;
  using Shdr = Elf32_Shdr;
  using Sym = Elf32_Sym;
  using Chdr = Elf32_Chdr;
  static constexpr uint8_t kClass = ELFCLASS32;
  static constexpr uint16_t kMachine = EM_386;
};

// Writes a small little-endian ELF executable as a linker would lay it out:
// headers, text, tables, section headers last.
template <typename T>
class ElfBuilder {
 public:
  static std::string Build(const TestElf& elf) {
    ElfBuilder builder(elf);
    return builder.Write();
  }

  static constexpr size_t kSections = 9;

 private:
  using Ehdr = typename T::Ehdr;
  using Phdr = typename T::Phdr;
  using Shdr = typename T::Shdr;
  using Sym = typename T::Sym;

  explicit ElfBuilder(const TestElf& elf) : elf_(elf) {}

  std::string Write() {
    file_.resize(elf_.text_offset + elf_.text_size, '\xcc');
    const std::string note = Note();
    std::string strings(1, '\0');
    std::string dynamic_strings(1, '\0');
    const std::string symbols = Symbols(elf_.symbols, strings);
    const std::string dynamic = Symbols(elf_.dynamic_symbols, dynamic_strings);
    sections_.emplace_back();
    Section(".text", SHT_PROGBITS, elf_.text_offset, elf_.text_size);
    sections_.back().sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    Set(sections_.back().sh_addr, elf_.text_address);
    const size_t note_offset = file_.size();
    Append(".note.gnu.build-id", SHT_NOTE, note);
    Append(".symtab", SHT_SYMTAB, Packed(symbols), 4);
    if (elf_.compression != 0) Set(sections_.back().sh_flags, SHF_COMPRESSED);
    Append(".strtab", SHT_STRTAB, Packed(strings));
    if (elf_.compression != 0) Set(sections_.back().sh_flags, SHF_COMPRESSED);
    Append(".dynsym", SHT_DYNSYM, dynamic, 6);
    Append(".dynstr", SHT_STRTAB, dynamic_strings);
    Append(elf_.extra_name, SHT_PROGBITS, elf_.extra_bytes);
    Section(".shstrtab", SHT_STRTAB, file_.size(), 0);
    Set(sections_.back().sh_size, names_.size());
    file_ += names_;
    WriteHeaders(note_offset, note.size());
    for (const Shdr& section : sections_) Put(section);
    return file_;
  }

  std::string Packed(const std::string& text) const {
    if (elf_.compression == 0) return text;
    typename T::Chdr header = {};
    header.ch_type = elf_.compression;
    Set(header.ch_size, text.size());
    header.ch_addralign = 1;
    const std::string head(reinterpret_cast<const char*>(&header),
                           sizeof(header));
    return head +
           (elf_.compression == kTestZstd ? PackZstd(text) : PackZlib(text));
  }

  static std::string PackZlib(const std::string& text) {
    uLongf size = ::compressBound(text.size());
    std::string packed(size, '\0');
    ::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
               reinterpret_cast<const Bytef*>(text.data()), text.size());
    packed.resize(size);
    return packed;
  }

  // In two frames, as a linker with threads does it.
  static std::string PackZstd(const std::string& text) {
    std::string all;
    const size_t half = text.size() / 2;
    for (const std::string& part : {text.substr(0, half), text.substr(half)}) {
      std::string packed(::ZSTD_compressBound(part.size()), '\0');
      packed.resize(::ZSTD_compress(packed.data(), packed.size(), part.data(),
                                    part.size(), 1));
      all += packed;
    }
    return all;
  }

  void WriteHeaders(size_t note_offset, size_t note_size) {
    Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = T::kClass;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = T::kMachine;
    header.e_version = EV_CURRENT;
    Set(header.e_phoff, sizeof(Ehdr));
    Set(header.e_shoff, file_.size());
    header.e_ehsize = sizeof(Ehdr);
    header.e_phentsize = sizeof(Phdr);
    header.e_phnum = 3;
    header.e_shentsize = sizeof(Shdr);
    header.e_shnum = kSections;
    header.e_shstrndx = kSections - 1;
    Phdr segments[3] = {};
    // The headers, readable only, as a linker that separates code does it.
    segments[0].p_type = PT_LOAD;
    segments[0].p_flags = PF_R;
    Set(segments[0].p_vaddr, elf_.text_address - elf_.text_offset);
    Set(segments[0].p_filesz, elf_.text_offset);
    Set(segments[0].p_memsz, elf_.text_offset);
    segments[1].p_type = PT_LOAD;
    segments[1].p_flags = PF_R | PF_X;
    Set(segments[1].p_offset, elf_.text_offset);
    Set(segments[1].p_vaddr, elf_.text_address);
    Set(segments[1].p_filesz, elf_.text_size);
    Set(segments[1].p_memsz, elf_.text_size);
    segments[2].p_type = PT_NOTE;
    Set(segments[2].p_offset, note_offset);
    Set(segments[2].p_filesz, note_size);
    std::memcpy(file_.data(), &header, sizeof(header));
    std::memcpy(file_.data() + sizeof(header), segments, sizeof(segments));
  }

  std::string Note() const {
    const auto size = static_cast<uint32_t>(elf_.build_id.size());
    const uint32_t head[3] = {4, size, NT_GNU_BUILD_ID};
    std::string note(reinterpret_cast<const char*>(head), sizeof(head));
    note.append("GNU\0", 4);
    note += elf_.build_id;
    note.resize((note.size() + 3) / 4 * 4, '\0');
    return note;
  }

  static std::string Symbols(const std::vector<TestSymbol>& symbols,
                             std::string& strings) {
    std::vector<Sym> table(1);
    for (const TestSymbol& symbol : symbols) {
      Sym entry = {};
      entry.st_name = static_cast<uint32_t>(strings.size());
      Set(entry.st_value, symbol.value);
      Set(entry.st_size, symbol.size);
      entry.st_info = static_cast<uint8_t>((symbol.binding << 4) | symbol.type);
      entry.st_shndx = symbol.section;
      table.push_back(entry);
      strings += symbol.name;
      strings += '\0';
    }
    return std::string(reinterpret_cast<const char*>(table.data()),
                       table.size() * sizeof(Sym));
  }

  void Append(std::string_view name, uint32_t type, const std::string& bytes,
              uint32_t link = 0) {
    Section(name, type, file_.size(), bytes.size());
    sections_.back().sh_link = link;
    if (link != 0) sections_.back().sh_entsize = sizeof(Sym);
    file_ += bytes;
  }

  void Section(std::string_view name, uint32_t type, uint64_t offset,
               uint64_t size) {
    if (names_.empty()) names_.push_back('\0');
    Shdr& section = sections_.emplace_back();
    section.sh_name = static_cast<uint32_t>(names_.size());
    section.sh_type = type;
    Set(section.sh_offset, offset);
    Set(section.sh_size, size);
    names_ += name;
    names_ += '\0';
  }

  // The 32-bit class has narrower fields.
  template <typename Field>
  static void Set(Field& field, uint64_t value) {
    field = static_cast<Field>(value);
  }

  template <typename Record>
  void Put(const Record& record) {
    file_.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }

  const TestElf& elf_;
  std::string file_;
  std::string names_;
  std::vector<Shdr> sections_;
};

}  // namespace ksym
