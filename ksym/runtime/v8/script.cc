// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/script.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "ksym/runtime/v8/text.h"

namespace ksym {
namespace {

constexpr size_t kBytesAtOnce = size_t{64} << 10;

// Finds the ends of lines in text that comes in parts (ECMA-262, LineTerminator
// Sequence).
class LineEnds {
 public:
  void Add(std::span<const std::byte> bytes, uint8_t size) {
    for (size_t i = 0; i + size <= bytes.size(); i += size) {
      uint16_t c = 0;
      std::memcpy(&c, bytes.data() + i, size);
      Add(c);
    }
  }
  // Whether there are more than are kept.
  bool is_full() const { return ends_.size() > kMaxV8Lines; }

  std::vector<uint32_t> Take() {
    if (after_return_) ends_.push_back(next_ - 1);
    // The last line need not end.
    ends_.push_back(next_);
    return std::move(ends_);
  }

 private:
  void Add(uint16_t c) {
    // "\r\n" is one end.
    if (after_return_ && c != '\n') ends_.push_back(next_ - 1);
    after_return_ = c == '\r';
    if (c == '\n' || c == 0x2028 || c == 0x2029) ends_.push_back(next_);
    ++next_;
  }

  std::vector<uint32_t> ends_;
  uint32_t next_ = 0;
  bool after_return_ = false;
};

std::vector<uint32_t> LineEndsOfText(const V8Heap& heap, V8Word source) {
  const auto pieces = FindV8Text(heap, source);
  if (!pieces) return {};
  uint64_t all = 0;
  for (const V8TextPiece& piece : *pieces) {
    all += uint64_t{piece.characters} * piece.bytes;
  }
  if (all > kMaxV8SourceBytes) return {};
  LineEnds ends;
  std::vector<std::byte> bytes;
  for (const V8TextPiece& piece : *pieces) {
    const uint64_t size = uint64_t{piece.characters} * piece.bytes;
    for (uint64_t done = 0; done < size; done += bytes.size()) {
      bytes.resize(std::min<uint64_t>(kBytesAtOnce, size - done));
      if (!heap.memory().Read(piece.data + done, bytes)) return {};
      ends.Add(bytes, piece.bytes);
      if (ends.is_full()) return {};
    }
  }
  return ends.Take();
}

// What V8 has computed for a stack trace: an array of small integers.
std::vector<uint32_t> LineEndsOfArray(const V8Heap& heap, V8Word array) {
  if (!heap.IsA(array, heap.layout().fixed_array)) return {};
  const auto length = heap.ReadWord(array.object() + V8Offsets::kArrayLength);
  if (!length || !length->is_smi() || length->smi() <= 0 ||
      static_cast<uint32_t>(length->smi()) > kMaxV8Lines) {
    return {};
  }
  std::vector<uint64_t> words(static_cast<size_t>(length->smi()));
  if (!heap.memory().Read(array.object() + V8Offsets::kArrayData,
                          std::as_writable_bytes(std::span(words)))) {
    return {};
  }
  std::vector<uint32_t> ends;
  ends.reserve(words.size());
  for (const uint64_t bits : words) {
    const V8Word word = {bits};
    if (!word.is_smi() || word.smi() < 0) return {};
    const auto end = static_cast<uint32_t>(word.smi());
    if (!ends.empty() && end <= ends.back()) return {};
    ends.push_back(end);
  }
  return ends;
}

}  // namespace

uint32_t V8Script::LineOf(uint32_t offset) const {
  const auto end = std::ranges::lower_bound(line_ends, offset);
  if (end == line_ends.end()) return 0;
  return static_cast<uint32_t>(end - line_ends.begin()) + 1 + first_line;
}

std::optional<int32_t> ReadV8ScriptId(const V8Heap& heap, V8Word script) {
  if (!heap.IsA(script, heap.layout().script)) return std::nullopt;
  const auto id = heap.ReadWord(script.object() + V8Offsets::kScriptId);
  if (!id || !id->is_smi()) return std::nullopt;
  return id->smi();
}

std::optional<V8Script> ReadV8Script(const V8Heap& heap, V8Word script) {
  const auto id = ReadV8ScriptId(heap, script);
  if (!id) return std::nullopt;
  const Address at = script.object();
  const auto name = heap.ReadWord(at + V8Offsets::kScriptName);
  const auto source = heap.ReadWord(at + V8Offsets::kScriptSource);
  const auto line = heap.ReadWord(at + V8Offsets::kScriptLineOffset);
  const auto ends = heap.ReadWord(at + V8Offsets::kScriptLineEnds);
  if (!name || !source || !line || !ends || !line->is_smi()) {
    return std::nullopt;
  }
  V8Script out = {.id = *id,
                  .name = ReadV8Text(heap, *name).value_or(""),
                  .first_line = static_cast<uint32_t>(std::max(line->smi(), 0)),
                  .line_ends = LineEndsOfArray(heap, *ends)};
  if (out.line_ends.empty()) out.line_ends = LineEndsOfText(heap, *source);
  return out;
}

}  // namespace ksym
