#include "ksym/elf/symbol_reader.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

struct RawSymbol {
  uint32_t name = 0;
  uint8_t info = 0;
  uint16_t section = 0;
  uint64_t value = 0;
  uint64_t size = 0;
};

RawSymbol ParseSymbol(ByteReader& in, ElfClass elf_class) {
  RawSymbol symbol;
  symbol.name = in.Read<uint32_t>();
  if (elf_class == ElfClass::k32) {
    symbol.value = in.Read<uint32_t>();
    symbol.size = in.Read<uint32_t>();
  }
  symbol.info = in.Read<uint8_t>();
  in.Read<uint8_t>();  // st_other
  symbol.section = in.Read<uint16_t>();
  if (elf_class == ElfClass::k64) {
    symbol.value = in.Read<uint64_t>();
    symbol.size = in.Read<uint64_t>();
  }
  return symbol;
}

struct Range {
  uint64_t start = 0;
  uint64_t end = 0;
};

std::vector<Range> ExecutableRanges(const ElfImage& image) {
  std::vector<Range> ranges;
  for (const ElfSection& section : image.sections()) {
    if ((section.flags & SHF_EXECINSTR) == 0) continue;
    const auto end = CheckedAdd(section.address.value, section.size);
    if (end && section.size > 0) {
      ranges.push_back({section.address.value, *end});
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  return ranges;
}

const Range* FindRange(const std::vector<Range>& ranges, uint64_t address) {
  const auto next = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](uint64_t value, const Range& r) { return value < r.start; });
  if (next == ranges.begin()) return nullptr;
  const Range& range = *(next - 1);
  return address < range.end ? &range : nullptr;
}

SymbolBinding BindingOf(uint8_t info) {
  switch (ELF64_ST_BIND(info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
      return SymbolBinding::kGlobal;
    case STB_WEAK:
      return SymbolBinding::kWeak;
    default:
      return SymbolBinding::kLocal;
  }
}

bool IsFunction(const RawSymbol& symbol) {
  if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS ||
      symbol.section == SHN_COMMON) {
    return false;
  }
  switch (ELF64_ST_TYPE(symbol.info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
      return true;
    case STT_NOTYPE:
      return symbol.size > 0;
    default:
      return false;
  }
}

// "$x", "$d", "$t", "$a" and "$x.suffix" mark what kind of bytes follow (ELF
// for the Arm Architecture, "Mapping symbols"); ".L" begins a label that the
// assembler was asked to keep.
bool IsIgnoredLocal(std::string_view start_of_name) {
  if (start_of_name.empty() || start_of_name[0] == '\0') return true;
  if (start_of_name.starts_with(".L")) return true;
  if (start_of_name.size() < 2 || start_of_name[0] != '$') return false;
  const bool marker =
      std::string_view("adtx").find(start_of_name[1]) != std::string_view::npos;
  if (!marker) return false;
  return start_of_name.size() == 2 || start_of_name[2] == '\0' ||
         start_of_name[2] == '.';
}

// Goes over the local symbols in the order of their names' places, so that
// the string table is read in blocks and once, and drops the ignored ones.
void DropIgnoredLocals(const ByteSource& source, const ElfSection& strings,
                       size_t first, std::vector<SymbolCandidate>& symbols) {
  std::vector<uint32_t> locals;
  for (size_t i = first; i < symbols.size(); ++i) {
    if (symbols[i].binding == SymbolBinding::kLocal) {
      locals.push_back(static_cast<uint32_t>(i));
    }
  }
  std::sort(locals.begin(), locals.end(), [&](uint32_t a, uint32_t b) {
    return symbols[a].name < symbols[b].name;
  });
  constexpr size_t kLookAt = 3;
  std::vector<std::byte> block(locals.empty() ? 0 : kBlockBytes);
  uint64_t block_start = 0;
  uint64_t block_end = 0;
  bool at_end = false;  // no byte of the table is behind the block
  for (const uint32_t i : locals) {
    const uint64_t name = symbols[i].name;
    if (name + kLookAt > block_end && !at_end) {
      const auto want = std::min<uint64_t>(strings.size - name, block.size());
      block_start = name;
      block_end = name + source
                             .ReadSomeAt(strings.file_offset + name,
                                         std::span(block).first(want))
                             .value_or(0);
      at_end = block_end < name + block.size();
    }
    const uint64_t at = std::min(name, block_end) - block_start;
    const uint64_t length = std::min(kLookAt, block_end - block_start - at);
    const std::string_view text(
        reinterpret_cast<const char*>(block.data()) + at, length);
    if (IsIgnoredLocal(text)) symbols[i].end = symbols[i].start;
  }
  // Build() leaves empty symbols out.
}

}  // namespace

Status ReadSymbols(const ByteSource& source, const ElfImage& image,
                   const ElfSection& section, NameTable table,
                   std::vector<SymbolCandidate>& out) {
  const bool is64 = image.elf_class() == ElfClass::k64;
  const size_t entry_size = is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  if (section.type == SHT_NOBITS) return {};
  if (section.entry_size != entry_size) {
    return Fail(ErrorCode::kCorrupt, "sh_entsize of a symbol table is " +
                                         std::to_string(section.entry_size));
  }
  if (section.link >= image.sections().size()) {
    return Fail(ErrorCode::kCorrupt, "a symbol table has no string table");
  }
  const uint64_t count = section.size / entry_size;
  if (count > kMaxSymbols) {
    return Fail(ErrorCode::kLimit, std::to_string(count) + " symbols");
  }
  const ElfSection& strings = image.sections()[section.link];
  const std::vector<Range> ranges = ExecutableRanges(image);
  const size_t first = out.size();
  const uint64_t address_mask =
      image.machine() == EM_ARM ? ~uint64_t{1} : ~uint64_t{0};
  std::vector<std::byte> block(kBlockBytes / entry_size * entry_size);
  for (uint64_t at = 0; at < count * entry_size; at += block.size()) {
    const uint64_t left = count * entry_size - at;
    const auto bytes = std::span(block).first(
        static_cast<size_t>(std::min<uint64_t>(left, block.size())));
    const auto offset = CheckedAdd(section.file_offset, at);
    if (!offset) return Fail(ErrorCode::kCorrupt, "a symbol table wraps");
    const auto read = source.ReadAt(*offset, bytes);
    if (!read) return read;
    ByteReader in(bytes);
    while (in.remaining() >= entry_size) {
      const RawSymbol symbol = ParseSymbol(in, image.elf_class());
      if (!IsFunction(symbol) || symbol.name >= strings.size) continue;
      SymbolCandidate candidate;
      candidate.start = {symbol.value & address_mask};
      const Range* range = FindRange(ranges, candidate.start.value);
      if (range == nullptr) continue;
      candidate.sized = symbol.size > 0;
      candidate.end = {range->end};
      if (candidate.sized && symbol.size < range->end - candidate.start.value) {
        candidate.end = candidate.start + symbol.size;
      }
      candidate.name = symbol.name;
      candidate.table = table;
      candidate.binding = BindingOf(symbol.info);
      out.push_back(candidate);
    }
  }
  DropIgnoredLocals(source, strings, first, out);
  return {};
}

}  // namespace ksym
