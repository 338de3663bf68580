// SPDX-License-Identifier: Apache-2.0
// A JVM's memory as anybody may make it: the bytes are the memory from 0x10000
// on, with the library's variables at its begin, and objects as JDK 17 has
// them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ksym/runtime/hotspot/code_walk.h"
#include "ksym/runtime/hotspot/compiled_code.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/hotspot/line_table.h"
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
  layout.const_method_bytes = 48;
  layout.const_method_flags = 28;
  layout.const_method_size = 24;
  layout.const_method_code_size = 32;
  layout.constants_source_file = 54;
  layout.nmethod_pcs = 268;
  layout.nmethod_pcs_end = 272;
  layout.nmethod_methods = 260;
  layout.nmethod_scopes = 120;
  layout.nmethod_immutable = 120;
  layout.nmethod_immutable_size = 276;
  layout.blob_mutable = 128;
  layout.blob_mutable_size = 280;
  layout.blob_relocation_size = 284;
  return layout;
}

void ReadMethod(const ksym::Memory& memory, const ksym::HotspotLayout& layout) {
  const auto identity =
      ksym::ReadHotspotMethodIdentity(memory, layout, {kBegin});
  if (!identity) return;
  const auto method = ksym::ReadHotspotMethod(memory, layout, *identity);
  if (!method) return;
  if (method->name.size() > 2 * ksym::kMaxHotspotSymbolBytes + 1 ||
      method->file.size() > ksym::kMaxHotspotSymbolBytes ||
      method->lines.size() > ksym::kMaxHotspotLineBytes) {
    std::abort();
  }
}

// Inlined methods, by rules of all versions: the first byte says which, and
// the second where in the code.
void ReadCompiled(const ksym::Memory& memory, ksym::HotspotLayout layout,
                  std::span<const std::byte> bytes) {
  using Scopes = ksym::HotspotLayout::Scopes;
  using Numbers = ksym::HotspotNumbers;
  if (bytes.size() < 2) return;
  const auto choice = std::to_integer<uint8_t>(bytes[0]);
  layout.numbers = (choice & 1) != 0 ? Numbers::kNoZero : Numbers::kAnyByte;
  constexpr std::array kAll = {Scopes::kInBlob, Scopes::kByAddress,
                               Scopes::kOutOfBlob, Scopes::kNone,
                               Scopes::kMethodsInBlob};
  layout.scopes = kAll[(choice >> 1) % kAll.size()];
  if (layout.scopes != Scopes::kByAddress) layout.nmethod_scopes = 264;
  const auto code =
      ksym::HotspotCompiledCode::Read(memory, layout, {kBegin}, 7);
  if (code) {
    const auto scopes = code->ScopesAt(std::to_integer<uint8_t>(bytes[1]));
    if (scopes && (scopes->scopes.empty() ||
                   scopes->scopes.size() > ksym::kMaxHotspotInlined ||
                   scopes->scopes.back().method != code->method())) {
      std::abort();
    }
  }
  const auto line = ksym::HotspotLineAt(bytes, layout.numbers, 5);
  if (line && (*line == 0 || *line > UINT16_MAX)) std::abort();
  if (ksym::HotspotLineTableBytes(bytes, layout.numbers) > bytes.size()) {
    std::abort();
  }
}

// A stack that is in the same bytes as the code that it leads through: the
// first of them is the map of segments, and says where in it the CPU was.
void WalkCode(const ksym::Memory& memory, std::span<const std::byte> bytes) {
  if (bytes.size() < 256) return;
  const auto choice = std::to_integer<uint8_t>(bytes[0]);
  ksym::HotspotLayout layout = Jdk17();
  layout.blob_name = 8;
  layout.blob_frame_size = 16;
  layout.blob_frame_complete = 20;
  layout.blob_code_begin = 24;
  layout.blob_code_end = 32;
  layout.nmethod_compile_id = 40;
  layout.nmethod_deopt = 48;
  layout.nmethod_deopt_mh = 56;
  layout.nmethod_original_pc = 44;
  layout.code_is_offset = (choice & 1) != 0;
  layout.deopt_is_offset = (choice & 2) != 0;
  layout.frame_complete_is_short = (choice & 4) != 0;
  ksym::HotspotCode code(layout, {{.begin = {kBegin},
                                   .end = {kBegin + bytes.size()},
                                   .segments = {kBegin},
                                   .segment_shift = 5}});
  ksym::HotspotSteps steps(code, memory);
  const ksym::StackPart part = {{kBegin}, bytes};
  ksym::StackCopy copy;
  copy.ip = {kBegin + 64 + choice % 128};
  copy.registers[static_cast<size_t>(ksym::kStackPointerRegister)] =
      kBegin + 64;
  copy.registers[static_cast<size_t>(ksym::kFramePointerRegister)] =
      kBegin + 96;
  copy.parts = {&part, 1};
  ksym::WalkedStack stack;
  ksym::WalkStack(copy, 64,
                  {.find = [&](ksym::Address at) -> ksym::CodeAt {
                     if (at.value - kBegin >= bytes.size()) return {};
                     return {ksym::CodeAt::Kind::kNoTable, nullptr, 0};
                   },
                   .steps = &steps},
                  stack);
  // A step leads up the stack.
  if (!std::ranges::is_sorted(stack.stack_pointers) ||
      stack.frames.size() > 64 || steps.frames().size() > 64) {
    std::abort();
  }
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
  ReadMethod(memory, layout);
  ReadCompiled(memory, layout, std::as_bytes(std::span(data, size)));
  WalkCode(memory, std::as_bytes(std::span(data, size)));
  const auto stub = ksym::ReadHotspotBlobName(memory, layout, {kBegin}, 64);
  if (stub && (stub->empty() || stub->size() > 64)) std::abort();
  return 0;
}
