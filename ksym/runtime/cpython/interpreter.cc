// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/interpreter.h"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

constexpr uint16_t kAmd64 = 62;
// Symbols that are looked at in a bucket; linkers make some two.
constexpr uint32_t kMostInBucket = 4096;
constexpr uint64_t kSymbolBytes = 24;

// Finds dynamic symbols by their GNU hash table: a few reads for each.
class DynamicSymbols {
 public:
  // False: the file has none.
  static std::optional<DynamicSymbols> Open(const ByteSource& source,
                                            const ElfImage& image) {
    const ElfSection* hash = image.FindSection(".gnu.hash");
    const ElfSection* symbols = image.FindSection(".dynsym");
    const ElfSection* names = image.FindSection(".dynstr");
    if (hash == nullptr || symbols == nullptr || names == nullptr) {
      return std::nullopt;
    }
    DynamicSymbols found(source, *hash, *symbols, *names);
    found.buckets_ = found.Word(0);
    found.first_symbol_ = found.Word(4);
    found.bloom_words_ = found.Word(8);
    found.bloom_shift_ = found.Word(12) & 31u;
    if (found.buckets_ == 0 || found.bloom_words_ == 0) return std::nullopt;
    return found;
  }

  std::optional<ElfAddress> Find(std::string_view name) const {
    const uint32_t hash = HashOf(name);
    const uint64_t bloom = Long(16 + 8 * uint64_t{hash / 64 % bloom_words_});
    const uint64_t mask =
        uint64_t{1} << hash % 64 | uint64_t{1} << (hash >> bloom_shift_) % 64;
    if ((bloom & mask) != mask) return std::nullopt;
    const uint64_t table = 16 + 8 * uint64_t{bloom_words_};
    const uint64_t chains = table + 4 * uint64_t{buckets_};
    const uint32_t first = Word(table + 4 * uint64_t{hash % buckets_});
    if (first < first_symbol_) return std::nullopt;
    for (uint32_t i = 0; i < kMostInBucket; ++i) {
      const uint64_t symbol = uint64_t{first} + i;
      const uint32_t other = Word(chains + 4 * (symbol - first_symbol_));
      if ((other | 1u) == (hash | 1u)) {
        const auto address = AddressOf(symbol, name);
        if (address) return address;
      }
      if ((other & 1u) != 0) break;
    }
    return std::nullopt;
  }

 private:
  DynamicSymbols(const ByteSource& source, const ElfSection& hash,
                 const ElfSection& symbols, const ElfSection& names)
      : source_(&source), hash_(&hash), symbols_(&symbols), names_(&names) {}

  static uint32_t HashOf(std::string_view name) {
    uint32_t hash = 5381;
    for (const char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
    return hash;
  }

  bool Read(const ElfSection& section, uint64_t offset,
            std::span<std::byte> out) const {
    const auto end = CheckedAdd(offset, out.size());
    const auto at = CheckedAdd(section.file_offset, offset);
    return end && at && *end <= section.size &&
           source_->ReadAt(*at, out).has_value();
  }
  // 0 outside of the section.
  uint32_t Word(uint64_t offset) const {
    uint32_t word = 0;
    return Read(*hash_, offset, std::as_writable_bytes(std::span(&word, 1)))
               ? word
               : 0;
  }
  uint64_t Long(uint64_t offset) const {
    return Word(offset) | uint64_t{Word(offset + 4)} << 32;
  }

  // Where that symbol is, if it has that name and is defined.
  std::optional<ElfAddress> AddressOf(uint64_t symbol,
                                      std::string_view name) const {
    std::array<std::byte, kSymbolBytes> bytes = {};
    if (!Read(*symbols_, symbol * kSymbolBytes, bytes)) return std::nullopt;
    ByteReader reader(bytes);
    const auto name_at = reader.Read<uint32_t>();
    reader.Read<uint16_t>();  // type and visibility
    const auto section = reader.Read<uint16_t>();
    const auto value = reader.Read<uint64_t>();
    std::vector<std::byte> other(name.size() + 1);
    if (section == 0 || !Read(*names_, name_at, other) ||
        std::memcmp(other.data(), name.data(), name.size()) != 0 ||
        other.back() != std::byte{0}) {
      return std::nullopt;
    }
    return ElfAddress{value};
  }

  const ByteSource* source_;
  const ElfSection* hash_;
  const ElfSection* symbols_;
  const ElfSection* names_;
  uint32_t buckets_ = 0;
  uint32_t first_symbol_ = 0;
  uint32_t bloom_words_ = 0;
  uint32_t bloom_shift_ = 0;
};

// The initial value of data of the file.
std::optional<uint64_t> InitialLong(const ByteSource& source,
                                    const ElfImage& image, ElfAddress address) {
  for (const ElfSegment& segment : image.segments()) {
    const uint64_t offset = address - segment.address;
    if (offset >= segment.file_size || segment.file_size - offset < 8) continue;
    const auto at = CheckedAdd(segment.file_offset.value, offset);
    uint64_t value = 0;
    if (!at ||
        !source.ReadAt(*at, std::as_writable_bytes(std::span(&value, 1)))) {
      return std::nullopt;
    }
    return value;
  }
  return std::nullopt;
}

// From 3.13 on _PyRuntime begins with _Py_DebugOffsets: a cookie, the version,
// and whether there is no global lock.
Status CheckDebugOffsets(const ByteSource& source, const ElfImage& image,
                         ElfAddress runtime, uint64_t version_hex) {
  constexpr uint64_t kCookie = 0x7970677562656478;  // "xdebugpy"
  const auto cookie = InitialLong(source, image, runtime);
  const auto version = InitialLong(source, image, runtime + 8);
  const auto free_threaded = InitialLong(source, image, runtime + 16);
  if (!cookie || !version || !free_threaded || *cookie != kCookie ||
      *version != version_hex) {
    return Fail(ErrorCode::kCorrupt,
                "_PyRuntime does not begin with _Py_DebugOffsets");
  }
  if (*free_threaded != 0) {
    return Fail(ErrorCode::kUnsupported,
                "CPython without the global lock: its frames are not known");
  }
  return {};
}

}  // namespace

Result<std::optional<CpythonInterpreter>> FindCpython(const ByteSource& source,
                                                      const ElfImage& image) {
  if (image.elf_class() != ElfClass::k64 || image.machine() != kAmd64) {
    return std::nullopt;
  }
  const auto symbols = DynamicSymbols::Open(source, image);
  if (!symbols) return std::nullopt;
  const auto runtime = symbols->Find("_PyRuntime");
  if (!runtime) return std::nullopt;
  const auto code_type = symbols->Find("PyCode_Type");
  const auto version_at = symbols->Find("Py_Version");
  const auto hex =
      version_at ? InitialLong(source, image, *version_at) : std::nullopt;
  if (!code_type || !hex) {
    return Fail(ErrorCode::kUnsupported,
                "CPython without Py_Version: only 3.11 and later are known");
  }
  const auto version = CpythonVersion::FromHex(*hex);
  const auto layout = CpythonLayoutOf(version);
  if (!layout) return Fail(layout.error());
  constexpr uint8_t kFirstWithDebugOffsets = 13;
  if (version.minor >= kFirstWithDebugOffsets) {
    auto checked = CheckDebugOffsets(source, image, *runtime, *hex);
    if (!checked) return Fail(std::move(checked.error()));
  }
  return CpythonInterpreter{.version = version,
                            .layout = *layout,
                            .key = *runtime + layout->key,
                            .code_type = *code_type};
}

}  // namespace ksym
