// SPDX-License-Identifier: Apache-2.0
// A JVM's memory as anybody may make it: the bytes are the memory from 0x10000
// on, with the library's variables at its begin, and objects as JDK 17 has
// them.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/hotspot/method.h"
#include "ksym/runtime/memory.h"

namespace {

constexpr uint64_t kBegin = 0x10000;

ksym::HotspotLibrary Library() {
  ksym::HotspotLibrary library;
  uint64_t at = 0;
  for (ksym::ElfAddress* place :
       {&library.structs, &library.types, &library.struct_stride,
        &library.struct_type_name, &library.struct_field_name,
        &library.struct_offset, &library.struct_address, &library.type_stride,
        &library.type_name, &library.type_size}) {
    place->value = at;
    at += 8;
  }
  return library;
}

ksym::HotspotLayout Jdk17() {
  ksym::HotspotLayout layout;
  layout.heaps = 0;
  layout.interpreter = 8;
  layout.array_data = 8;
  layout.space_low = 16;
  layout.space_end = 8;
  layout.heap_memory = 8;
  layout.heap_segments = 120;
  layout.heap_segment_shift = 256;
  layout.blob_name = 96;
  layout.nmethod_method = 112;
  layout.nmethod_compile_id = 304;
  layout.method_const_method = 8;
  layout.const_method_constants = 8;
  layout.const_method_name = 34;
  layout.constants_bytes = 72;
  layout.constants_length = 60;
  layout.constants_holder = 24;
  layout.klass_name = 24;
  layout.symbol_length = 4;
  layout.symbol_body = 6;
  return layout;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ksym::PieceMemory memory;
  memory.Add({kBegin}, std::as_bytes(std::span(data, size)));
  const ksym::CachedMemory cached(memory);
  (void)ksym::ReadHotspotLayout(cached, Library(), kBegin);
  const ksym::HotspotLayout layout = Jdk17();
  const auto heaps = ksym::ReadHotspotHeaps(memory, layout, kBegin);
  if (heaps && (heaps->empty() || heaps->size() > ksym::kMaxHotspotHeaps)) {
    std::abort();
  }
  const auto name = ksym::ReadHotspotMethodName(memory, layout, {kBegin});
  if (name && name->size() > 2 * ksym::kMaxHotspotSymbolBytes + 1) std::abort();
  (void)ksym::ReadHotspotMethodOf(memory, layout, {kBegin}, 0);
  const auto stub = ksym::ReadHotspotBlobName(memory, layout, {kBegin}, 64);
  if (stub && (stub->empty() || stub->size() > 64)) std::abort();
  return 0;
}
