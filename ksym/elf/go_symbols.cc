// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/go_symbols.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/code_ranges.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr size_t kFixedHeaderBytes = 8;
constexpr uint64_t kMaxHeaderWords = 8;

// Go pads its text to a function's alignment, C libraries add more than that.
constexpr uint64_t kMaxTextPadding = 64;

enum class Version : uint8_t { kGo1Dot2, kGo1Dot16, kGo1Dot18 };

std::optional<Version> VersionOf(uint32_t magic) {
  switch (magic) {
    case 0xfffffffb:
      return Version::kGo1Dot2;
    case 0xfffffffa:
      return Version::kGo1Dot16;
    case 0xfffffff0:  // 1.18
    case 0xfffffff1:  // 1.20: its difference is in the names of packages
      return Version::kGo1Dot18;
    default:
      return std::nullopt;
  }
}

// What the header says; places are offsets in the section.
struct Layout {
  Version version = Version::kGo1Dot2;
  size_t pointer_bytes = 0;
  size_t field_bytes = 0;  // of a start and of a place in the list
  uint64_t count = 0;
  uint64_t text_start = 0;  // what starts are relative to
  uint64_t names = 0;
  uint64_t list = 0;
  uint64_t records = 0;  // what places of records are relative to
};

// Reads at rising places through a block.
class BlockCursor {
 public:
  explicit BlockCursor(const SectionBytes& bytes)
      : bytes_(bytes), block_(kBlockBytes) {}

  // Empty when the section ends before.
  std::span<const std::byte> Read(uint64_t offset, size_t size) {
    if (offset < start_ || offset - start_ > filled_ ||
        size > filled_ - (offset - start_)) {
      start_ = offset;
      filled_ = bytes_.ReadSomeAt(offset, block_).value_or(0);
      if (filled_ < size) return {};
    }
    return std::span(block_).subspan(static_cast<size_t>(offset - start_),
                                     size);
  }

 private:
  const SectionBytes& bytes_;
  std::vector<std::byte> block_;
  uint64_t start_ = 0;
  size_t filled_ = 0;
};

uint64_t ReadWord(ByteReader& in, size_t bytes) {
  return bytes == 8 ? in.Read<uint64_t>() : in.Read<uint32_t>();
}

std::unexpected<Error> Corrupt(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, std::string(".gopclntab: ").append(what));
}

void PlaceParts(std::span<const uint64_t> words, Layout& layout) {
  layout.count = words[0];
  layout.field_bytes = layout.pointer_bytes;
  switch (layout.version) {
    case Version::kGo1Dot2:
      layout.list = kFixedHeaderBytes + layout.pointer_bytes;
      break;
    case Version::kGo1Dot16:
      layout.names = words[2];
      layout.list = layout.records = words[6];
      break;
    case Version::kGo1Dot18:
      layout.field_bytes = sizeof(uint32_t);
      layout.text_start = words[2];
      layout.names = words[3];
      layout.list = layout.records = words[7];
      break;
  }
}

Result<Layout> ReadLayout(const SectionBytes& section) {
  std::array<std::byte, kFixedHeaderBytes + kMaxHeaderWords * 8> bytes = {};
  const auto got = section.ReadSomeAt(0, bytes);
  if (!got) return Fail(got.error());
  ByteReader in(std::span<const std::byte>(bytes).first(*got));
  const auto version = VersionOf(in.Read<uint32_t>());
  if (!version) {
    return Fail(ErrorCode::kUnsupported, ".gopclntab: unknown magic number");
  }
  Layout layout;
  layout.version = *version;
  const auto padding = in.Read<uint16_t>();
  const auto quantum = in.Read<uint8_t>();
  layout.pointer_bytes = in.Read<uint8_t>();
  if (padding != 0 || (quantum != 1 && quantum != 2 && quantum != 4) ||
      (layout.pointer_bytes != 4 && layout.pointer_bytes != 8)) {
    return Corrupt("bad header");
  }
  std::array<uint64_t, kMaxHeaderWords> words = {};
  const size_t count = layout.version == Version::kGo1Dot2    ? 1
                       : layout.version == Version::kGo1Dot16 ? 7
                                                              : 8;
  for (size_t i = 0; i < count; ++i) {
    words[i] = ReadWord(in, layout.pointer_bytes);
  }
  if (!in.ok()) return Corrupt("the header is cut off");
  PlaceParts(words, layout);
  return layout;
}

Status CheckLayout(const Layout& layout, uint64_t size) {
  if (layout.count == 0) return Corrupt("no functions");
  // Bounded before it is multiplied.
  if (layout.count > kMaxSymbols) {
    return Fail(ErrorCode::kLimit,
                ".gopclntab: " + std::to_string(layout.count) + " functions");
  }
  const uint64_t list_bytes = (2 * layout.count + 1) * layout.field_bytes;
  if (layout.list > size || list_bytes > size - layout.list ||
      layout.names >= size) {
    return Corrupt("a part lies outside the section");
  }
  return {};
}

// One function as the list has it.
struct Entry {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t record = 0;
};

class GoReader {
 public:
  GoReader(const SectionBytes& section, const CodeRanges& code,
           const Layout& layout)
      : section_(section),
        code_(code),
        layout_(layout),
        list_(section),
        records_(section) {}

  Result<std::vector<SymbolCandidate>> Read() {
    std::vector<SymbolCandidate> candidates;
    candidates.reserve(static_cast<size_t>(layout_.count));
    for (uint64_t i = 0; i < layout_.count; ++i) {
      const auto entry = ReadEntry(i);
      if (!entry) return Fail(entry.error());
      const auto name = ReadName(*entry);
      if (!name) return Fail(name.error());
      const auto candidate = MakeCandidate(*entry, *name);
      if (!candidate) return Fail(candidate.error());
      candidates.push_back(*candidate);
    }
    return candidates;
  }

 private:
  Result<Entry> ReadEntry(uint64_t index) {
    const size_t field = layout_.field_bytes;
    // A function ends where the next begins, so that one's start is read as
    // well; the list has one more start than functions.
    ByteReader in(list_.Read(layout_.list + index * 2 * field, 3 * field));
    Entry entry;
    entry.start = ReadWord(in, field);
    entry.record = ReadWord(in, field);
    entry.end = ReadWord(in, field);
    if (!in.ok()) return Corrupt("the list of functions is cut off");
    if (entry.end < entry.start) return Corrupt("functions are not in order");
    // All linkers write them in this order, and reading in any other could
    // cost a block per function.
    if (entry.record < last_record_) return Corrupt("records are not in order");
    last_record_ = entry.record;
    return entry;
  }

  Result<uint32_t> ReadName(const Entry& entry) {
    const auto place = CheckedAdd(layout_.records, entry.record);
    if (!place) return Corrupt("a record lies outside the section");
    ByteReader in(
        records_.Read(*place, layout_.field_bytes + sizeof(uint32_t)));
    const uint64_t start = ReadWord(in, layout_.field_bytes);
    const auto name = in.Read<uint32_t>();
    if (!in.ok()) return Corrupt("a record lies outside the section");
    // A table that was misread, as one of an unknown version, does not agree
    // here.
    if (start != entry.start) return Corrupt("a record is another function's");
    if (name >= section_.size() - layout_.names) {
      return Corrupt("a name lies outside the section");
    }
    return name;
  }

  Result<SymbolCandidate> MakeCandidate(const Entry& entry,
                                        uint32_t name) const {
    const auto start = CheckedAdd(layout_.text_start, entry.start);
    const auto end = CheckedAdd(layout_.text_start, entry.end);
    if (!start || !end) return Corrupt("a function's address wraps around");
    const CodeRanges::Range* range = code_.Find(*start);
    if (range == nullptr || *end > range->end) {
      return Corrupt("a function is not in an executable section");
    }
    SymbolCandidate candidate;
    candidate.start = {*start};
    candidate.end = {*end};
    candidate.name = name;
    candidate.table = NameTable::kSymtab;
    // A dynamic symbol for the same bytes, as of an exported function, goes
    // first.
    candidate.binding = SymbolBinding::kLocal;
    return candidate;
  }

  const SectionBytes& section_;
  const CodeRanges& code_;
  const Layout& layout_;
  BlockCursor list_;
  BlockCursor records_;
  uint64_t last_record_ = 0;
};

// Newer linkers leave the start of the text out, and so does what relocates it
// at run time. It is that of .text if Go's functions fill that: a program that
// was linked with C code has that before and behind them.
Status FindTextStart(const SectionBytes& section, const ElfImage& image,
                     Layout& layout) {
  if (layout.version != Version::kGo1Dot18 || layout.text_start != 0) return {};
  std::array<std::byte, sizeof(uint32_t)> bytes = {};
  const auto read = section.ReadAt(
      layout.list + 2 * layout.count * layout.field_bytes, bytes);
  if (!read) return read;
  const uint64_t end = ByteReader(bytes).Read<uint32_t>();
  const ElfSection* text = image.FindSection(".text");
  if (text == nullptr || end > text->size ||
      text->size - end >= kMaxTextPadding) {
    return Fail(ErrorCode::kUnsupported, ".gopclntab: no start of the text");
  }
  layout.text_start = text->address.value;
  return {};
}

}  // namespace

Result<GoFunctions> ReadGoFunctions(const ByteSource& source,
                                    const ElfImage& image) {
  const ElfSection* section = image.FindSection(".gopclntab");
  if (section == nullptr) {
    section = image.FindSection(".data.rel.ro.gopclntab");
  }
  if (section == nullptr) return Fail(ErrorCode::kNotFound, "no .gopclntab");
  const auto bytes = SectionBytes::Open(source, image, *section);
  if (!bytes) return Fail(bytes.error());
  if (bytes->is_unpacked()) return Corrupt("a program cannot unpack it");
  auto layout = ReadLayout(*bytes);
  if (!layout) return Fail(std::move(layout.error()));
  const auto checked = CheckLayout(*layout, bytes->size());
  if (!checked) return Fail(checked.error());
  const auto found = FindTextStart(*bytes, image, *layout);
  if (!found) return Fail(found.error());
  const CodeRanges code(image);
  auto candidates = GoReader(*bytes, code, *layout).Read();
  if (!candidates) return Fail(std::move(candidates.error()));
  GoFunctions functions;
  functions.candidates = std::move(*candidates);
  // The section's first bytes were read, so this does not wrap; the names'
  // own bytes are read when asked for.
  functions.names_offset = section->file_offset + layout->names;
  functions.names_size = bytes->size() - layout->names;
  return functions;
}

}  // namespace ksym
