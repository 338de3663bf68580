// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/code.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "ksym/runtime/v8/bytecodes.h"
#include "ksym/runtime/v8/source_positions.h"

namespace ksym {
namespace {

constexpr size_t kMaxPositionBytes = size_t{256} << 10;
constexpr size_t kInliningBytes = 16;
constexpr size_t kMaxInliningBytes = kInliningBytes << 12;
constexpr uint64_t kTagOfObject = 1;

// The Code of the object in code space, if the address is in it.
std::optional<V8Word> CodeInStream(const V8Heap& heap, Address stream,
                                   Address pc) {
  const V8Layout& layout = heap.layout();
  constexpr uint64_t kStreamCode = 8;
  V8Word code = {stream.value | kTagOfObject};
  if (layout.code_start != 0) {
    const auto word = heap.ReadWord(stream + kStreamCode);
    if (!word) return std::nullopt;
    code = *word;
  }
  if (!heap.IsA(code, layout.code)) return std::nullopt;
  const Address begin = stream + layout.code_header;
  if (layout.code_start != 0 &&
      heap.Read64(code.object() + layout.code_start) != begin.value) {
    return std::nullopt;
  }
  const auto size = heap.Read32(code.object() + layout.code_size);
  if (!size || pc - begin >= *size) return std::nullopt;
  return code;
}

// An element of an array; nothing: it has none.
std::optional<V8Word> ElementOf(const V8Heap& heap, V8Word array,
                                uint32_t index) {
  if (!array.is_pointer()) return std::nullopt;
  const auto length = heap.ReadWord(array.object() + V8Offsets::kArrayLength);
  if (!length || !length->is_smi() || length->smi() < 0 ||
      index >= static_cast<uint32_t>(length->smi())) {
    return std::nullopt;
  }
  return heap.ReadWord(array.object() + V8Offsets::kArrayData +
                       8 * uint64_t{index});
}

// What optimized code was made of: Code::deoptimization_data.
class Deoptimization {
 public:
  Deoptimization(const V8Heap& heap, V8Word data) : heap_(heap), data_(data) {
    const auto array =
        ElementOf(heap, data, heap.layout().deoptimization_positions);
    if (array) inlinings_ = heap.ReadBytes(*array, kMaxInliningBytes);
  }

  // The function that the code is of.
  std::optional<V8Word> Shared() const {
    const V8Layout& layout = heap_.layout();
    auto word = ElementOf(heap_, data_, layout.deoptimization_shared);
    if (word && layout.wrapper != 0) {
      if (!heap_.IsA(*word, layout.wrapper)) return std::nullopt;
      word = heap_.ReadWord(word->object() + layout.wrapper_shared);
    }
    if (!word || !heap_.IsA(*word, layout.shared_function_info)) {
      return std::nullopt;
    }
    return word;
  }

  // An inlined call: of what, and from where.
  struct Inlined {
    V8Word shared;
    uint64_t position = 0;
  };
  std::optional<Inlined> At(uint32_t inlining) const {
    const V8Layout& layout = heap_.layout();
    if ((uint64_t{inlining} + 1) * kInliningBytes > inlinings_.size()) {
      return std::nullopt;
    }
    Inlined out;
    int32_t function = 0;
    const std::byte* at = inlinings_.data() + inlining * kInliningBytes;
    std::memcpy(&out.position, at, sizeof(out.position));
    std::memcpy(&function, at + sizeof(out.position), sizeof(function));
    if (function < 0) return std::nullopt;
    const auto literals =
        ElementOf(heap_, data_, layout.deoptimization_literals);
    if (!literals) return std::nullopt;
    const auto shared =
        ElementOf(heap_, *literals, static_cast<uint32_t>(function));
    if (!shared || !heap_.IsA(*shared, layout.shared_function_info)) {
      return std::nullopt;
    }
    out.shared = *shared;
    return out;
  }

 private:
  const V8Heap& heap_;
  V8Word data_;
  std::vector<std::byte> inlinings_;
};

// From the place in the code outward. Nothing: it does not hold up.
std::optional<std::vector<V8CodeFrame>> FramesAt(
    const Deoptimization& made, V8Word shared,
    std::optional<V8SourcePosition> position) {
  std::vector<V8CodeFrame> frames;
  while (position && position->inlining) {
    if (frames.size() == kMaxV8Inlined) return std::nullopt;
    const auto inlined = made.At(*position->inlining);
    if (!inlined) return std::nullopt;
    frames.push_back({inlined->shared, position->script_offset});
    position = DecodeV8Position(inlined->position);
  }
  frames.push_back({shared, position ? std::optional(position->script_offset)
                                     : std::nullopt});
  return frames;
}

V8PositionForm PositionFormOf(const V8Layout& layout) {
  return layout.positions_are_unsigned ? V8PositionForm::kUnsigned
                                       : V8PositionForm::kSigned;
}

// The instructions of a BytecodeArray; empty: it is none, or has too many.
std::vector<std::byte> ReadBytecode(const V8Heap& heap, V8Word bytecode) {
  const V8Layout& layout = heap.layout();
  if (!heap.IsA(bytecode, layout.bytecode_array)) return {};
  const auto length =
      heap.ReadWord(bytecode.object() + V8Offsets::kArrayLength);
  if (!length || !length->is_smi() || length->smi() < 0 ||
      static_cast<uint32_t>(length->smi()) > kMaxV8Bytecode) {
    return {};
  }
  std::vector<std::byte> bytes(static_cast<size_t>(length->smi()));
  if (!heap.memory().Read(bytecode.object() + layout.bytecode_first, bytes)) {
    return {};
  }
  return bytes;
}

// Where in the script baseline code is, so many bytes from its begin. It has
// its byte code and the table of that where optimized code has what it was made
// of and its positions.
std::optional<uint32_t> BaselineOffset(const V8Heap& heap, Address code,
                                       uint64_t offset) {
  const V8Layout& layout = heap.layout();
  const auto bytecode = heap.ReadWord(code + layout.code_deoptimization);
  const auto table = heap.ReadWord(code + layout.code_positions);
  if (!bytecode || !table) return std::nullopt;
  const auto at = FindV8BaselineOffset(
      heap.ReadBytes(*table, kMaxPositionBytes), ReadBytecode(heap, *bytecode),
      V8BytecodesOf(layout.version), offset);
  const auto positions =
      heap.ReadWord(bytecode->object() + layout.bytecode_positions);
  if (!at || !positions) return std::nullopt;
  const auto position =
      FindV8Position(heap.ReadBytes(*positions, kMaxPositionBytes),
                     PositionFormOf(layout), *at);
  return position ? std::optional(position->script_offset) : std::nullopt;
}

}  // namespace

std::optional<V8Word> V8CodeFinder::FindObject(const V8Heap& heap, Address pc) {
  constexpr size_t kBlock = 4096;
  std::array<uint64_t, kBlock / 8> words = {};
  uint64_t at = pc.value & ~uint64_t{kBlock - 1};
  for (size_t done = 0; done < kMaxV8CodeBytes; done += kBlock) {
    if (!heap.memory().Read({at}, std::as_writable_bytes(std::span(words)))) {
      return std::nullopt;
    }
    for (size_t i = words.size(); i-- > 0;) {
      const Address stream = {at + 8 * i};
      const V8Word map = {words[i]};
      if (stream >= pc || (map.bits & 3) != kTagOfObject) continue;
      if (map_ != 0 && map.bits != map_) continue;
      if (!heap.IsA({stream.value | kTagOfObject},
                    heap.layout().instruction_stream)) {
        continue;
      }
      const auto code = CodeInStream(heap, stream, pc);
      // The code before does not reach so far.
      if (!code && map_ != 0) return std::nullopt;
      if (!code) continue;
      map_ = map.bits;
      return code;
    }
    if (at < kBlock) return std::nullopt;
    at -= kBlock;
  }
  return std::nullopt;
}

std::optional<V8Code> V8CodeFinder::Find(const V8Heap& heap, Address pc) {
  const V8Layout& layout = heap.layout();
  const auto object = FindObject(heap, pc);
  if (!object) return std::nullopt;
  const Address code = object->object();
  const auto flags = heap.Read32(code + layout.code_flags);
  if (!flags) return std::nullopt;
  const auto begin = layout.code_start != 0
                         ? heap.Read64(code + layout.code_start)
                         : std::optional((code + layout.code_header).value);
  if (!begin || pc.value < *begin) return std::nullopt;
  if ((*flags & 15) == layout.baseline_kind) {
    return V8Code{
        .is_baseline = true,
        .baseline_offset = BaselineOffset(heap, code, pc.value - *begin),
        .object = *object,
        .frames = {}};
  }
  const auto data = heap.ReadWord(code + layout.code_deoptimization);
  const auto table = heap.ReadWord(code + layout.code_positions);
  if (!data || !table) return std::nullopt;
  const Deoptimization made(heap, *data);
  const auto shared = made.Shared();
  if (!shared) return std::nullopt;
  const auto positions = heap.ReadBytes(*table, kMaxPositionBytes);
  auto frames =
      FramesAt(made, *shared,
               FindV8Position(positions, PositionFormOf(layout),
                              static_cast<uint32_t>(pc.value - *begin)));
  if (!frames) return std::nullopt;
  return V8Code{.is_baseline = false,
                .baseline_offset = {},
                .object = *object,
                .frames = std::move(*frames)};
}

}  // namespace ksym
