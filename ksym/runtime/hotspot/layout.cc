// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ksym {
namespace {

template <typename T>
std::optional<T> ReadValue(const Memory& memory, uint64_t address) {
  T value = {};
  if (!memory.Read({address}, std::as_writable_bytes(std::span(&value, 1)))) {
    return std::nullopt;
  }
  return value;
}

// Empty where there is none, or one that is too long for any that is looked
// for.
std::string ReadTableName(const Memory& memory, uint64_t address) {
  std::array<char, kMaxHotspotNameBytes> name = {};
  const size_t bytes =
      memory.ReadSome({address}, std::as_writable_bytes(std::span(name)));
  const std::string_view text(name.data(), bytes);
  const size_t end = text.find('\0');
  return end == text.npos ? std::string() : std::string(text.substr(0, end));
}

struct TableField {
  uint64_t offset = 0;
  uint64_t address = 0;  // of a static variable
};

// What the tables say, by "Type::field" and "Type".
class Tables {
 public:
  Status Read(const Memory& memory, const HotspotLibrary& library,
              uint64_t load_bias) {
    auto done = ReadFields(memory, library, load_bias);
    return done ? ReadTypes(memory, library, load_bias) : done;
  }

  const TableField* Find(const std::string& name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? nullptr : &found->second;
  }
  std::optional<uint64_t> SizeOf(const std::string& type) const {
    const auto found = sizes_.find(type);
    if (found == sizes_.end()) return std::nullopt;
    return found->second;
  }

 private:
  static constexpr uint64_t kMaxStride = 128;

  // Variables of the library that have a word each; nothing if one cannot be.
  template <size_t kCount>
  static std::optional<std::array<uint64_t, kCount>> ReadWords(
      const Memory& memory, uint64_t load_bias,
      const std::array<ElfAddress, kCount>& places) {
    std::array<uint64_t, kCount> words = {};
    for (size_t i = 0; i < kCount; ++i) {
      const auto word =
          ReadValue<uint64_t>(memory, load_bias + places[i].value);
      if (!word) return std::nullopt;
      words[i] = *word;
      // All but the first are sizes of an entry or places in it.
      if (i == 1 && *word > kMaxStride) return std::nullopt;
      if (i > 1 && *word + 8 > words[1]) return std::nullopt;
    }
    return words;
  }

  Status ReadFields(const Memory& memory, const HotspotLibrary& library,
                    uint64_t load_bias) {
    const auto words =
        ReadWords<6>(memory, load_bias,
                     {library.structs, library.struct_stride,
                      library.struct_type_name, library.struct_field_name,
                      library.struct_offset, library.struct_address});
    if (!words) return Fail(ErrorCode::kCorrupt, "gHotSpotVMStructs lies");
    const auto [table, stride, type, field, offset, address] = *words;
    for (uint64_t i = 0; i < kMaxHotspotEntries; ++i) {
      const uint64_t entry = table + i * stride;
      const auto type_at = ReadValue<uint64_t>(memory, entry + type);
      const auto field_at = ReadValue<uint64_t>(memory, entry + field);
      const auto offset_at = ReadValue<uint64_t>(memory, entry + offset);
      const auto static_at = ReadValue<uint64_t>(memory, entry + address);
      if (!type_at || !field_at || !offset_at || !static_at) break;
      if (*type_at == 0) return {};
      fields_[ReadTableName(memory, *type_at) + "::" +
              ReadTableName(memory, *field_at)] = {*offset_at, *static_at};
    }
    return Fail(ErrorCode::kCorrupt, "gHotSpotVMStructs has no end");
  }

  Status ReadTypes(const Memory& memory, const HotspotLibrary& library,
                   uint64_t load_bias) {
    const auto words = ReadWords<4>(memory, load_bias,
                                    {library.types, library.type_stride,
                                     library.type_name, library.type_size});
    if (!words) return Fail(ErrorCode::kCorrupt, "gHotSpotVMTypes lies");
    const auto [table, stride, name, size] = *words;
    for (uint64_t i = 0; i < kMaxHotspotEntries; ++i) {
      const uint64_t entry = table + i * stride;
      const auto name_at = ReadValue<uint64_t>(memory, entry + name);
      const auto size_at = ReadValue<uint64_t>(memory, entry + size);
      if (!name_at || !size_at) break;
      if (*name_at == 0) return {};
      sizes_[ReadTableName(memory, *name_at)] = *size_at;
    }
    return Fail(ErrorCode::kCorrupt, "gHotSpotVMTypes has no end");
  }

  std::map<std::string, TableField> fields_;
  std::map<std::string, uint64_t> sizes_;
};

// One that is needed, by its names: they change from release to release.
struct WantedOffset {
  std::vector<std::string> names;
  uint16_t* place = nullptr;
  uint16_t most = HotspotLayout::kObjectBytes - 8;
};

Status SetOffsets(const Tables& tables, const std::vector<WantedOffset>& all) {
  for (const auto& [names, place, most] : all) {
    const TableField* found = nullptr;
    for (const std::string& name : names) {
      if (found == nullptr) found = tables.Find(name);
    }
    if (found == nullptr) {
      return Fail(ErrorCode::kUnsupported,
                  "a JVM without " + names.front() + " in its tables");
    }
    if (found->offset > most) {
      return Fail(ErrorCode::kCorrupt, names.front() + " cannot be there");
    }
    *place = static_cast<uint16_t>(found->offset);
  }
  return {};
}

Status SetSizes(const Tables& tables, HotspotLayout& layout) {
  for (const auto& [name, place] :
       {std::pair("HeapBlock", &layout.block_bytes),
        {"ConstMethod", &layout.const_method_bytes},
        {"ConstantPool", &layout.constants_bytes}}) {
    const auto size = tables.SizeOf(name);
    if (!size || *size == 0 || *size > HotspotLayout::kObjectBytes) {
      return Fail(ErrorCode::kUnsupported,
                  std::string("a JVM without a size of ") + name);
    }
    *place = static_cast<uint16_t>(*size);
  }
  return {};
}

Status SetStatics(const Tables& tables, uint64_t load_bias,
                  HotspotLayout& layout) {
  for (const auto& [name, place] :
       {std::pair("CodeCache::_heaps", &layout.heaps),
        {"AbstractInterpreter::_code", &layout.interpreter}}) {
    const TableField* field = tables.Find(name);
    if (field == nullptr || field->address == 0) {
      return Fail(ErrorCode::kUnsupported,
                  std::string("a JVM without ") + name + " in its tables");
    }
    *place = field->address - load_bias;
  }
  return {};
}

std::vector<WantedOffset> WantedOf(const Tables& tables, HotspotLayout& l) {
  constexpr uint16_t kInBlob = HotspotLayout::kBlobBytes - 8;
  l.code_is_offset = tables.Find("CodeBlob::_code_begin") == nullptr;
  return {
      {{"GrowableArrayBase::_len", "GenericGrowableArray::_len"},
       &l.array_length},
      {{"GrowableArray<int>::_data"}, &l.array_data},
      {{"VirtualSpace::_low"}, &l.space_low},
      {{"VirtualSpace::_low_boundary"}, &l.space_begin},
      {{"VirtualSpace::_high_boundary"}, &l.space_end},
      {{"CodeHeap::_memory"}, &l.heap_memory},
      {{"CodeHeap::_segmap"}, &l.heap_segments},
      {{"CodeHeap::_log2_segment_size"}, &l.heap_segment_shift},
      {{"CodeBlob::_name"}, &l.blob_name, kInBlob},
      {{"CodeBlob::_size"}, &l.blob_size, kInBlob},
      {{"CodeBlob::_frame_size"}, &l.blob_frame_size, kInBlob},
      {{"CodeBlob::_frame_complete_offset"}, &l.blob_frame_complete, kInBlob},
      {{"CodeBlob::_code_begin", "CodeBlob::_code_offset"},
       &l.blob_code_begin,
       kInBlob},
      {{"CodeBlob::_code_end", "CodeBlob::_data_offset"},
       &l.blob_code_end,
       kInBlob},
      {{"nmethod::_method", "CompiledMethod::_method"},
       &l.nmethod_method,
       kInBlob},
      {{"nmethod::_compile_id"}, &l.nmethod_compile_id, kInBlob},
      {{"Method::_constMethod"}, &l.method_const_method},
      {{"ConstMethod::_constants"}, &l.const_method_constants},
      {{"ConstMethod::_name_index"}, &l.const_method_name},
      {{"ConstMethod::_code_size"}, &l.const_method_code_size},
      {{"ConstantPool::_length"}, &l.constants_length},
      {{"ConstantPool::_pool_holder"}, &l.constants_holder},
      {{"Klass::_name"}, &l.klass_name},
      {{"Symbol::_length"}, &l.symbol_length},
      {{"Symbol::_body", "Symbol::_body[0]"}, &l.symbol_body},
  };
}

}  // namespace

Result<HotspotLayout> ReadHotspotLayout(const Memory& memory,
                                        const HotspotLibrary& library,
                                        uint64_t load_bias) {
  Tables tables;
  HotspotLayout layout;
  auto done = tables.Read(memory, library, load_bias);
  if (done) done = SetOffsets(tables, WantedOf(tables, layout));
  if (done) done = SetSizes(tables, layout);
  if (done) done = SetStatics(tables, load_bias, layout);
  if (!done) return Fail(std::move(done.error()));
  return layout;
}

Result<std::vector<HotspotHeap>> ReadHotspotHeaps(const Memory& memory,
                                                  const HotspotLayout& layout,
                                                  uint64_t load_bias) {
  const auto not_yet = [] {
    return Fail(ErrorCode::kNotFound, "a JVM that is starting");
  };
  const auto corrupt = [] {
    return Fail(ErrorCode::kCorrupt, "a JVM whose code heaps cannot be");
  };
  const auto array = ReadValue<uint64_t>(memory, load_bias + layout.heaps);
  // The interpreter comes after the heaps, and is code in one of them.
  const auto interpreter =
      ReadValue<uint64_t>(memory, load_bias + layout.interpreter);
  if (!array || !interpreter || *array == 0 || *interpreter == 0) {
    return not_yet();
  }
  const auto length = ReadValue<int32_t>(memory, *array + layout.array_length);
  const auto data = ReadValue<uint64_t>(memory, *array + layout.array_data);
  if (!length || !data || *length <= 0 ||
      *length > static_cast<int32_t>(kMaxHotspotHeaps)) {
    return corrupt();
  }
  std::vector<HotspotHeap> heaps;
  for (uint64_t i = 0; i < static_cast<uint64_t>(*length); ++i) {
    const auto heap = ReadValue<uint64_t>(memory, *data + 8 * i);
    if (!heap) return corrupt();
    const auto word = [&](uint64_t offset) {
      return ReadValue<uint64_t>(memory, *heap + offset);
    };
    const auto begin = word(uint64_t{layout.heap_memory} + layout.space_begin);
    const auto end = word(uint64_t{layout.heap_memory} + layout.space_end);
    const auto segments =
        word(uint64_t{layout.heap_segments} + layout.space_low);
    const auto shift =
        ReadValue<int32_t>(memory, *heap + layout.heap_segment_shift);
    constexpr uint64_t kMaxBytes = uint64_t{1} << 32;
    if (!begin || !end || !segments || !shift || *begin >= *end ||
        *end - *begin > kMaxBytes || *shift < 3 || *shift > 16) {
      return corrupt();
    }
    heaps.push_back({.begin = {*begin},
                     .end = {*end},
                     .segments = {*segments},
                     .segment_shift = static_cast<uint8_t>(*shift)});
  }
  return heaps;
}

}  // namespace ksym
