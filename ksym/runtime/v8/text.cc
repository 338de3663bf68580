// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/text.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ksym/base/utf8.h"

namespace ksym {
namespace {

constexpr std::string_view kCutMark = "\xe2\x80\xa6";
constexpr uint32_t kNoCharacter = 0xfffd;  // of what is no character

// String, by its instance type: `v8dbg_StringRepresentationMask` and so on.
constexpr uint16_t kFirstOther = 0x80;
constexpr uint16_t kRepresentation = 7;
constexpr uint16_t kSequential = 0;
constexpr uint16_t kCons = 1;
constexpr uint16_t kExternal = 2;
constexpr uint16_t kSliced = 3;
constexpr uint16_t kThin = 5;
constexpr uint16_t kOneByte = 8;

constexpr uint64_t kStringLength = 12;
constexpr uint64_t kStringData = 16;   // sequential
constexpr uint64_t kStringFirst = 16;  // cons; parent of sliced, actual of thin
constexpr uint64_t kStringSecond = 24;  // cons
constexpr uint64_t kStringOffset = 24;  // sliced
constexpr uint64_t kExternalData = 24;  // the characters of its resource

// A part of a String that is still to be looked at.
struct StringPart {
  V8Word string;
  uint32_t begin = 0;
  uint32_t length = 0;
};

// Looks at one String; what it is made of comes in front of what is behind it.
bool StepInto(const V8Heap& heap, const StringPart& part,
              std::vector<StringPart>& rest, std::vector<V8TextPiece>& pieces) {
  const auto type = heap.TypeOf(part.string);
  if (!type || *type >= kFirstOther) return false;
  const Address at = part.string.object();
  const auto all = heap.Read32(at + kStringLength);
  if (!all || part.begin > *all || part.length > *all - part.begin) {
    return false;
  }
  const auto bytes = static_cast<uint8_t>((*type & kOneByte) != 0 ? 1 : 2);
  const uint64_t skipped = uint64_t{part.begin} * bytes;
  switch (*type & kRepresentation) {
    case kSequential:
      pieces.push_back({at + kStringData + skipped, part.length, bytes});
      return true;
    case kExternal: {
      const auto data = heap.Read64(at + kExternalData);
      if (!data) return false;
      pieces.push_back({Address{*data} + skipped, part.length, bytes});
      return true;
    }
    case kThin: {
      const auto actual = heap.ReadWord(at + kStringFirst);
      if (!actual) return false;
      rest.push_back({*actual, part.begin, part.length});
      return true;
    }
    case kSliced: {
      const auto parent = heap.ReadWord(at + kStringFirst);
      const auto offset = heap.ReadWord(at + kStringOffset);
      if (!parent || !offset || !offset->is_smi() || offset->smi() < 0) {
        return false;
      }
      rest.push_back({*parent,
                      part.begin + static_cast<uint32_t>(offset->smi()),
                      part.length});
      return true;
    }
    case kCons: {
      const auto first = heap.ReadWord(at + kStringFirst);
      const auto second = heap.ReadWord(at + kStringSecond);
      if (!first || !second || !first->is_pointer()) return false;
      const auto left = heap.Read32(first->object() + kStringLength);
      if (!left) return false;
      const uint32_t in_first =
          part.begin < *left ? std::min(part.length, *left - part.begin) : 0;
      if (in_first < part.length) {
        const uint32_t begin = std::max(part.begin, *left) - *left;
        rest.push_back({*second, begin, part.length - in_first});
      }
      if (in_first > 0) rest.push_back({*first, part.begin, in_first});
      return true;
    }
    default:
      return false;
  }
}

// Appends characters; a pair of surrogates is one.
void AppendUtf16(std::span<const std::byte> data, uint8_t bytes,
                 std::string& out) {
  const size_t characters = data.size() / bytes;
  const auto unit = [&](size_t i) {
    uint16_t c = 0;
    std::memcpy(&c, data.data() + i * bytes, bytes);
    return uint32_t{c};
  };
  for (size_t i = 0; i < characters; ++i) {
    uint32_t c = unit(i);
    if (c >= 0xd800 && c < 0xdc00 && i + 1 < characters) {
      const uint32_t low = unit(i + 1);
      if (low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        ++i;
      }
    }
    AppendUtf8(IsCharacter(c) ? c : kNoCharacter, out);
  }
}

}  // namespace

std::optional<std::vector<V8TextPiece>> FindV8Text(const V8Heap& heap,
                                                   V8Word string) {
  if (!string.is_pointer()) return std::nullopt;
  const auto length = heap.Read32(string.object() + kStringLength);
  if (!length) return std::nullopt;
  std::vector<V8TextPiece> pieces;
  std::vector<StringPart> rest = {{string, 0, *length}};
  for (size_t steps = 0; !rest.empty(); ++steps) {
    if (steps == 2 * kMaxV8Pieces || pieces.size() == kMaxV8Pieces) {
      return std::nullopt;
    }
    const StringPart part = rest.back();
    rest.pop_back();
    if (!StepInto(heap, part, rest, pieces)) return std::nullopt;
  }
  return pieces;
}

std::optional<std::string> ReadV8Text(const V8Heap& heap, V8Word string) {
  const auto pieces = FindV8Text(heap, string);
  if (!pieces) return std::nullopt;
  std::string out;
  size_t left = kMaxV8Text;
  for (const V8TextPiece& piece : *pieces) {
    const size_t wanted = std::min<size_t>(left, piece.characters);
    std::vector<std::byte> bytes(wanted * piece.bytes);
    if (!heap.memory().Read(piece.data, bytes)) return std::nullopt;
    AppendUtf16(bytes, piece.bytes, out);
    left -= wanted;
    if (wanted < piece.characters) {
      out += kCutMark;
      break;
    }
  }
  return out;
}

}  // namespace ksym
