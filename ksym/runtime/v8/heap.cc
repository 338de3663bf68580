// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/heap.h"

#include <span>

namespace ksym {
namespace {

template <typename T>
std::optional<T> ReadV8Number(const Memory& memory, Address address) {
  T value = 0;
  if (!memory.Read(address, std::as_writable_bytes(std::span(&value, 1)))) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<uint64_t> V8Heap::Read64(Address address) const {
  return ReadV8Number<uint64_t>(*memory_, address);
}

std::optional<uint32_t> V8Heap::Read32(Address address) const {
  return ReadV8Number<uint32_t>(*memory_, address);
}

std::optional<V8Word> V8Heap::ReadWord(Address address) const {
  const auto bits = Read64(address);
  return bits ? std::optional(V8Word{*bits}) : std::nullopt;
}

std::optional<uint16_t> V8Heap::TypeOf(V8Word word) const {
  if (!word.is_pointer()) return std::nullopt;
  // The map of a freed or a moved object's first word is none: its own map is
  // the one of maps.
  const auto map = ReadWord(word.object());
  if (!map || !map->is_pointer()) return std::nullopt;
  const auto type =
      ReadV8Number<uint16_t>(*memory_, map->object() + V8Offsets::kMapType);
  const auto map_of_map = ReadWord(map->object());
  if (!type || !map_of_map || !map_of_map->is_pointer()) return std::nullopt;
  const auto meta = ReadV8Number<uint16_t>(
      *memory_, map_of_map->object() + V8Offsets::kMapType);
  return meta == layout_->map ? type : std::nullopt;
}

std::vector<std::byte> V8Heap::ReadBytes(V8Word array, size_t most) const {
  const auto type = TypeOf(array);
  if (!type ||
      (*type != layout_->byte_array && *type != layout_->trusted_byte_array)) {
    return {};
  }
  const auto length = ReadWord(array.object() + V8Offsets::kArrayLength);
  if (!length || !length->is_smi() || length->smi() < 0 ||
      static_cast<uint32_t>(length->smi()) > most) {
    return {};
  }
  std::vector<std::byte> bytes(static_cast<size_t>(length->smi()));
  if (!memory_->Read(array.object() + V8Offsets::kArrayData, bytes)) return {};
  return bytes;
}

}  // namespace ksym
