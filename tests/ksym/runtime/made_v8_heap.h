// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/runtime/memory.h"
#include "ksym/runtime/v8/heap.h"
#include "ksym/runtime/v8/layout.h"

namespace ksym {

// A heap of V8 as tests make it, object by object.
class MadeV8Heap {
 public:
  explicit MadeV8Heap(const V8Layout& layout) : layout_(layout) {}

  const V8Layout& layout() const { return layout_; }

  // An object of that type and so many bytes, all of them 0 but the map.
  V8Word New(uint16_t type, size_t bytes) {
    const uint64_t at = next_;
    next_ += (bytes + 63) / 32 * 32;
    PutAt(at, bytes);
    Set(V8Word{at | 1}, 0, MapOf(type).bits);
    return {at | 1};
  }
  V8Word NewArray(uint16_t type, const std::vector<uint64_t>& words) {
    const V8Word array = New(type, V8Offsets::kArrayData + 8 * words.size());
    Set(array, V8Offsets::kArrayLength, Smi(words.size()));
    for (size_t i = 0; i < words.size(); ++i) {
      Set(array, V8Offsets::kArrayData + 8 * i, words[i]);
    }
    return array;
  }
  V8Word NewBytes(std::string_view bytes) {
    const V8Word array =
        New(layout_.byte_array, V8Offsets::kArrayData + bytes.size());
    Set(array, V8Offsets::kArrayLength, Smi(bytes.size()));
    Fill(array, V8Offsets::kArrayData, bytes);
    return array;
  }
  // A sequential String of one byte a character, or of two.
  V8Word NewText(std::string_view text, uint8_t bytes = 1) {
    constexpr uint16_t kOneByteType = 8;
    constexpr uint64_t kData = 16;
    const V8Word string =
        New(bytes == 1 ? kOneByteType : 0, kData + text.size());
    Set(string, 12, static_cast<uint32_t>(text.size() / bytes));
    Fill(string, kData, text);
    return string;
  }
  // Any object at any place.
  void PutAt(uint64_t address, size_t bytes) {
    memory_[address].assign(bytes, '\0');
  }

  template <typename T>
  void Set(V8Word object, uint64_t offset, T value) {
    SetAt(object.object().value + offset, value);
  }
  template <typename T>
  void SetAt(uint64_t address, T value) {
    auto at = std::prev(memory_.upper_bound(address));
    std::memcpy(at->second.data() + (address - at->first), &value,
                sizeof(value));
  }
  void Fill(V8Word object, uint64_t offset, std::string_view bytes) {
    const uint64_t address = object.object().value + offset;
    auto at = std::prev(memory_.upper_bound(address));
    std::memcpy(at->second.data() + (address - at->first), bytes.data(),
                bytes.size());
  }
  static uint64_t Smi(uint64_t value) { return value << 32; }

  V8Word MapOf(uint16_t type) {
    const auto known = maps_.find(type);
    if (known != maps_.end()) return known->second;
    const uint64_t at = next_;
    next_ += 128;
    PutAt(at, 80);
    const V8Word map = {at | 1};
    maps_.emplace(type, map);
    const V8Word meta = type == layout_.map ? map : MapOf(layout_.map);
    Set(map, 0, meta.bits);
    Set(map, V8Offsets::kMapType, type);
    return map;
  }

  PieceMemory memory() const {
    PieceMemory memory;
    for (const auto& [address, bytes] : memory_) {
      memory.Add({address}, std::as_bytes(std::span(bytes)));
    }
    return memory;
  }

  // A Script of that text.
  V8Word NewScript(int32_t id, std::string_view name, std::string_view source) {
    const V8Word script = New(layout_.script, 104);
    Set(script, V8Offsets::kScriptName, NewText(name).bits);
    Set(script, V8Offsets::kScriptSource, NewText(source).bits);
    Set(script, V8Offsets::kScriptId, Smi(static_cast<uint64_t>(id)));
    return script;
  }
  // A function that was not compiled yet, so that it has its name itself.
  V8Word NewFunction(V8Word name, V8Word script, uint32_t number) {
    const V8Word shared = New(layout_.shared_function_info, 80);
    Set(shared, layout_.shared_name, name.bits);
    Set(shared, layout_.shared_script, script.bits);
    Set(shared, layout_.shared_literal_id, number);

    return shared;
  }

 private:
  const V8Layout& layout_;
  uint64_t next_ = 0x100000;
  std::map<uint64_t, std::string> memory_;
  std::map<uint16_t, V8Word> maps_;
};

// An entry of a source position table: how far code and position go on.
inline std::string V8PositionEntry(const V8Layout& layout, uint64_t code,
                                   int64_t position) {
  std::string out;
  const auto add = [&out](uint64_t number) {
    for (; number > 0x7f; number >>= 7) {
      out += static_cast<char>(0x80 | (number & 0x7f));
    }
    out += static_cast<char>(number);
  };
  add(layout.positions_are_unsigned ? code << 2 | 1 : code << 1);
  add(static_cast<uint64_t>(position) << 1 ^
      static_cast<uint64_t>(position >> 63));
  return out;
}

// A source position: a place in a script, of the inlined call of that number.
inline uint64_t V8RawPosition(uint64_t offset, int64_t inlining = -1) {
  return (offset + 1) << 1 | static_cast<uint64_t>(inlining + 1) << 31;
}

}  // namespace ksym
