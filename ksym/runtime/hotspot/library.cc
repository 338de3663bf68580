// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/library.h"

#include <string_view>
#include <utility>

#include "ksym/elf/dynamic_symbols.h"

namespace ksym {

std::optional<HotspotLibrary> FindHotspot(const ByteSource& source,
                                          const ElfImage& image) {
  constexpr uint16_t kX86Machine = 62;
  if (image.elf_class() != ElfClass::k64 || image.machine() != kX86Machine) {
    return std::nullopt;
  }
  const auto symbols = DynamicSymbols::Open(source, image);
  if (!symbols) return std::nullopt;
  HotspotLibrary found;
  for (const auto& [name, place] :
       {std::pair<std::string_view, ElfAddress*>("gHotSpotVMStructs",
                                                 &found.structs),
        {"gHotSpotVMTypes", &found.types},
        {"gHotSpotVMStructEntryArrayStride", &found.struct_stride},
        {"gHotSpotVMStructEntryTypeNameOffset", &found.struct_type_name},
        {"gHotSpotVMStructEntryFieldNameOffset", &found.struct_field_name},
        {"gHotSpotVMStructEntryOffsetOffset", &found.struct_offset},
        {"gHotSpotVMStructEntryAddressOffset", &found.struct_address},
        {"gHotSpotVMTypeEntryArrayStride", &found.type_stride},
        {"gHotSpotVMTypeEntryTypeNameOffset", &found.type_name},
        {"gHotSpotVMTypeEntrySizeOffset", &found.type_size}}) {
    const auto symbol = symbols->Find(name);
    if (!symbol) return std::nullopt;
    *place = symbol->address;
  }
  return found;
}

}  // namespace ksym
