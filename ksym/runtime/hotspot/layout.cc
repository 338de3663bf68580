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
  layout.has_one_heap = tables.Find("CodeCache::_heaps") == nullptr &&
                        tables.Find("CodeCache::_heap") != nullptr;
  // As the template interpreter of JDK 8 lays its frames out; since JDK 9 they
  // have the class's mirror, too (frame_x86.hpp).
  constexpr uint16_t kWordBytes = 8;
  if (layout.has_one_heap) layout.interpreter_bcp -= kWordBytes;
  for (const auto& [name, place] :
       {std::pair(
            layout.has_one_heap ? "CodeCache::_heap" : "CodeCache::_heaps",
            &layout.heaps),
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

std::vector<WantedOffset> WantedOf(HotspotLayout& l) {
  constexpr uint16_t kInBlob = HotspotLayout::kBlobBytes - 8;
  return {
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

// Those of the array of heaps.
std::vector<WantedOffset> WantedOfArray(HotspotLayout& l) {
  return {{{"GrowableArrayBase::_len", "GenericGrowableArray::_len"},
           &l.array_length},
          {{"GrowableArray<int>::_data"}, &l.array_data}};
}

// Sets all of them, or none where one is missing or cannot be.
bool SetOptional(const Tables& tables, const std::vector<WantedOffset>& all) {
  if (SetOffsets(tables, all)) return true;
  for (const WantedOffset& wanted : all) *wanted.place = 0;
  return false;
}

void SetDeopt(const Tables& tables, HotspotLayout& l) {
  constexpr uint16_t kInBlob = HotspotLayout::kBlobBytes - 8;
  if (!SetOptional(
          tables,
          {{{"nmethod::_orig_pc_offset"}, &l.nmethod_original_pc, kInBlob}})) {
    return;
  }
  const bool is_address = SetOptional(
      tables,
      {{{"CompiledMethod::_deopt_handler_begin"}, &l.nmethod_deopt, kInBlob}});
  l.deopt_is_offset = !is_address;
  if (!is_address) {
    (void)SetOptional(
        tables,
        {{{"nmethod::_deopt_handler_offset", "nmethod::_deoptimize_offset"},
          &l.nmethod_deopt,
          kInBlob}});
  }
  (void)SetOptional(tables,
                    {{{is_address ? "CompiledMethod::_deopt_mh_handler_begin"
                                  : "nmethod::_deopt_mh_handler_offset",
                       "nmethod::_deoptimize_mh_offset"},
                      &l.nmethod_deopt_mh,
                      kInBlob}});
}

void SetLines(const Tables& tables, HotspotLayout& l) {
  (void)SetOptional(tables, {{{"HeapBlock::Header::_used"}, &l.block_used}});
  (void)SetOptional(
      tables, {{{"ConstMethod::_flags", "ConstMethod::_flags._flags"},
                &l.const_method_flags},
               {{"ConstMethod::_constMethod_size"}, &l.const_method_size}});
  if (!SetOptional(tables, {{{"ConstantPool::_source_file_name_index"},
                             &l.constants_source_file}})) {
    (void)SetOptional(tables, {{{"InstanceKlass::_source_file_name_index"},
                                &l.klass_source_file}});
  }
}

// The version of the JVM's release; nothing: it is not known.
std::optional<int32_t> VersionOf(const Memory& memory, const Tables& tables) {
  const TableField* field =
      tables.Find("Abstract_VM_Version::_vm_major_version");
  if (field == nullptr) return std::nullopt;
  return ReadValue<int32_t>(memory, field->address);
}

// Finds the methods that scopes name, where scopes are in memory of their own.
void SetMethodsOfScopes(const Tables& tables, HotspotLayout& l) {
  constexpr uint16_t kInBlob = HotspotLayout::kBlobBytes - 8;
  if (SetOptional(
          tables,
          {{{"CodeBlob::_mutable_data"}, &l.blob_mutable, kInBlob},
           {{"CodeBlob::_mutable_data_size"}, &l.blob_mutable_size, kInBlob},
           {{"CodeBlob::_relocation_size"},
            &l.blob_relocation_size,
            kInBlob}})) {
    l.scopes = HotspotLayout::Scopes::kOutOfBlob;
  } else if (tables.Find("CodeBlob::_data_offset") != nullptr &&
             SetOptional(tables, {{{"nmethod::_metadata_offset"},
                                   &l.nmethod_methods,
                                   kInBlob}})) {
    l.scopes = HotspotLayout::Scopes::kMethodsInBlob;
  }
}

void SetScopes(const Memory& memory, const Tables& tables, HotspotLayout& l) {
  constexpr uint16_t kInBlob = HotspotLayout::kBlobBytes - 8;
  constexpr int32_t kNoZeroSince = 20;
  const auto version = VersionOf(memory, tables);
  if (!version) return;
  // JDK 8 says that it is 25.
  if (*version >= kNoZeroSince && !l.has_one_heap) {
    l.numbers = HotspotNumbers::kNoZero;
  }
  if (SetOptional(
          tables,
          {{{"nmethod::_scopes_pcs_offset"}, &l.nmethod_pcs, kInBlob},
           {{"nmethod::_scopes_data_offset"}, &l.nmethod_scopes, kInBlob},
           {{"nmethod::_immutable_data"}, &l.nmethod_immutable, kInBlob},
           {{"nmethod::_immutable_data_size"},
            &l.nmethod_immutable_size,
            kInBlob}})) {
    SetMethodsOfScopes(tables, l);
    return;
  }
  if (!SetOptional(
          tables,
          {{{"nmethod::_scopes_pcs_offset"}, &l.nmethod_pcs, kInBlob},
           {{"nmethod::_dependencies_offset"}, &l.nmethod_pcs_end, kInBlob},
           {{"nmethod::_metadata_offset"}, &l.nmethod_methods, kInBlob}})) {
    return;
  }
  if (SetOptional(tables, {{{"CompiledMethod::_scopes_data_begin",
                             "nmethod::_scopes_data_begin"},
                            &l.nmethod_scopes,
                            kInBlob}})) {
    l.scopes = HotspotLayout::Scopes::kByAddress;
  } else if (SetOptional(tables, {{{"nmethod::_scopes_data_offset"},
                                   &l.nmethod_scopes,
                                   kInBlob}})) {
    l.scopes = HotspotLayout::Scopes::kInBlob;
  }
}

}  // namespace

Result<HotspotLayout> ReadHotspotLayout(const Memory& memory,
                                        const HotspotLibrary& library,
                                        uint64_t load_bias) {
  Tables tables;
  HotspotLayout layout;
  auto done = tables.Read(memory, library, load_bias);
  if (done) done = SetOffsets(tables, WantedOf(layout));
  if (done) done = SetSizes(tables, layout);
  if (done) done = SetStatics(tables, load_bias, layout);
  if (done && !layout.has_one_heap) {
    done = SetOffsets(tables, WantedOfArray(layout));
  }
  if (!done) return Fail(std::move(done.error()));
  layout.code_is_offset = tables.Find("CodeBlob::_code_begin") == nullptr;
  // JDK 8 alone has offsets and one heap.
  layout.frame_complete_is_short =
      layout.code_is_offset && !layout.has_one_heap;
  SetDeopt(tables, layout);
  SetLines(tables, layout);
  SetScopes(memory, tables, layout);
  return layout;
}

namespace {

std::unexpected<Error> CannotBeHeaps() {
  return Fail(ErrorCode::kCorrupt, "a JVM whose code heaps cannot be");
}

Result<HotspotHeap> ReadHeap(const Memory& memory, const HotspotLayout& layout,
                             uint64_t heap) {
  const auto word = [&](uint64_t offset) {
    return ReadValue<uint64_t>(memory, heap + offset);
  };
  const auto begin = word(uint64_t{layout.heap_memory} + layout.space_begin);
  const auto end = word(uint64_t{layout.heap_memory} + layout.space_end);
  const auto segments = word(uint64_t{layout.heap_segments} + layout.space_low);
  const auto shift =
      ReadValue<int32_t>(memory, heap + layout.heap_segment_shift);
  constexpr uint64_t kMaxBytes = uint64_t{1} << 32;
  if (!begin || !end || !segments || !shift || *begin >= *end ||
      *end - *begin > kMaxBytes || *shift < 3 || *shift > 16) {
    return CannotBeHeaps();
  }
  return HotspotHeap{.begin = {*begin},
                     .end = {*end},
                     .segments = {*segments},
                     .segment_shift = static_cast<uint8_t>(*shift)};
}

}  // namespace

Result<std::vector<HotspotHeap>> ReadHotspotHeaps(const Memory& memory,
                                                  const HotspotLayout& layout,
                                                  uint64_t load_bias) {
  const auto first = ReadValue<uint64_t>(memory, load_bias + layout.heaps);
  // The interpreter comes after the heaps, and is code in one of them.
  const auto interpreter =
      ReadValue<uint64_t>(memory, load_bias + layout.interpreter);
  if (!first || !interpreter || *first == 0 || *interpreter == 0) {
    return Fail(ErrorCode::kNotFound, "a JVM that is starting");
  }
  std::vector<uint64_t> places = {*first};
  if (!layout.has_one_heap) {
    const auto length =
        ReadValue<int32_t>(memory, *first + layout.array_length);
    const auto data = ReadValue<uint64_t>(memory, *first + layout.array_data);
    if (!length || !data || *length <= 0 ||
        *length > static_cast<int32_t>(kMaxHotspotHeaps)) {
      return CannotBeHeaps();
    }
    places.clear();
    for (uint64_t i = 0; i < static_cast<uint64_t>(*length); ++i) {
      const auto place = ReadValue<uint64_t>(memory, *data + 8 * i);
      if (!place) return CannotBeHeaps();
      places.push_back(*place);
    }
  }
  std::vector<HotspotHeap> heaps;
  for (const uint64_t place : places) {
    auto heap = ReadHeap(memory, layout, place);
    if (!heap) return Fail(std::move(heap.error()));
    heaps.push_back(*heap);
  }
  return heaps;
}

}  // namespace ksym
