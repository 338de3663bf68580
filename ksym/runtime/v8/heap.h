// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/runtime/memory.h"
#include "ksym/runtime/v8/layout.h"

namespace ksym {

// A word that V8 keeps: a small integer (Smi), or a pointer with a tag to an
// object, strong or weak.
struct V8Word {
  uint64_t bits = 0;

  bool is_smi() const { return (bits & 1) == 0; }
  bool is_pointer() const { return (bits & 1) != 0; }
  int32_t smi() const { return static_cast<int32_t>(bits >> 32); }
  // Where the object of a pointer begins.
  Address object() const { return {bits & ~uint64_t{3}}; }
};

// Reads objects of V8's heap. What is there is untrusted and may be something
// else at the next read: nothing is taken for an object whose type is not the
// one that is asked for. Borrows memory and layout.
class V8Heap {
 public:
  V8Heap(const Memory& memory, const V8Layout& layout)
      : memory_(&memory), layout_(&layout) {}

  const V8Layout& layout() const { return *layout_; }
  const Memory& memory() const { return *memory_; }

  std::optional<uint64_t> Read64(Address address) const;
  std::optional<uint32_t> Read32(Address address) const;
  std::optional<V8Word> ReadWord(Address address) const;
  // Its map's instance type; nothing: what is there is no object.
  std::optional<uint16_t> TypeOf(V8Word word) const;
  bool IsA(V8Word word, uint16_t type) const { return TypeOf(word) == type; }
  // An array of that many bytes at the most; empty: it is none, or is empty.
  std::vector<std::byte> ReadBytes(V8Word array, size_t most) const;

 private:
  const Memory* memory_;
  const V8Layout* layout_;
};

// Where frames have words, in bytes below their frame pointer; the same in all
// versions that are known (src/execution/frame-constants.h).
struct V8Frame {
  static constexpr uint64_t kContext = 8;  // or a number: no function's frame
  static constexpr uint64_t kFunction = 16;
  static constexpr uint64_t kBytecode = 32;  // of interpreted ones
  static constexpr uint64_t kOffset = 40;    // a Smi
};

// The same in all versions that are known.
struct V8Offsets {
  static constexpr uint64_t kMapType = 12;     // Map
  static constexpr uint64_t kArrayLength = 8;  // FixedArray, ByteArray: a Smi
  static constexpr uint64_t kArrayData = 16;
  static constexpr uint64_t kScriptSource = 8;  // Script
  static constexpr uint64_t kScriptName = 16;
  static constexpr uint64_t kScriptLineOffset = 24;
  static constexpr uint64_t kScriptLineEnds = 56;
  static constexpr uint64_t kScriptId = 64;
};

}  // namespace ksym
