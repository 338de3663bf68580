// SPDX-License-Identifier: Apache-2.0
// A heap of V8 as anybody may make it: the first byte says which version, the
// rest is memory from 0x1000 on with a function, a script, a string, a scope
// and code wherever the bytes say so.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/memory.h"
#include "ksym/runtime/v8/bytecodes.h"
#include "ksym/runtime/v8/code.h"
#include "ksym/runtime/v8/engine.h"
#include "ksym/runtime/v8/function.h"
#include "ksym/runtime/v8/scope_info.h"
#include "ksym/runtime/v8/script.h"
#include "ksym/runtime/v8/source_positions.h"
#include "ksym/runtime/v8/text.h"

namespace {

constexpr uint64_t kBegin = 0x1000;

void ReadObject(const ksym::V8Heap& heap, ksym::V8Word word) {
  const auto text = ksym::ReadV8Text(heap, word);
  constexpr size_t kMaxBytes = 4 * ksym::kMaxV8Text + 8;
  if (text && text->size() > kMaxBytes) std::abort();
  const auto function = ksym::ReadV8Function(heap, word);
  if (function &&
      (function->name.empty() || function->name.size() > kMaxBytes)) {
    std::abort();
  }
  (void)ksym::ReadV8ScopeInfo(heap, word);
  const auto script = ksym::ReadV8Script(heap, word);
  if (!script) return;
  uint32_t last = 0;
  for (const uint32_t end : script->line_ends) {
    if (script->LineOf(end) < last) std::abort();
    last = script->LineOf(end);
  }
}

void ReadHeap(std::span<const std::byte> bytes) {
  const auto layouts = ksym::KnownV8Layouts();
  const auto number = static_cast<uint8_t>(bytes.front());
  ksym::PieceMemory memory;
  memory.Add({kBegin}, bytes.subspan(1));
  const ksym::V8Heap heap(memory, layouts[number % layouts.size()]);
  constexpr uint64_t kObjects = 16;
  for (uint64_t i = 0; i < kObjects; ++i) {
    ReadObject(heap, {(kBegin + 64 * i) | 1});
  }
  ksym::V8CodeFinder finder;
  for (const uint64_t pc : {uint64_t{16}, uint64_t{200}, bytes.size()}) {
    const auto code = finder.Find(heap, {kBegin + pc});
    if (!code) continue;
    if (code->frames.size() > ksym::kMaxV8Inlined + 1) std::abort();
    if (code->frames.empty() != code->is_baseline) std::abort();
  }
}

void ReadPositions(std::span<const std::byte> bytes) {
  using enum ksym::V8PositionForm;
  for (const auto form : {kSigned, kUnsigned}) {
    for (const uint32_t offset : {0u, 7u, 300u, 0xffffffffu}) {
      (void)ksym::FindV8Position(bytes, form, offset);
    }
  }
}

// The first half is a table, the second one byte code.
void ReadBaseline(std::span<const std::byte> bytes) {
  const auto table = bytes.first(bytes.size() / 2);
  const auto bytecode = bytes.subspan(table.size());
  for (const ksym::V8Layout& layout : ksym::KnownV8Layouts()) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{40}, ~uint64_t{0}}) {
      const auto found = ksym::FindV8BaselineOffset(
          table, bytecode, ksym::V8BytecodesOf(layout.version), offset);
      if (found && *found != 0 && *found >= bytecode.size()) std::abort();
    }
  }
}

void FindEngine(std::span<const std::byte> bytes) {
  const auto source = ksym::ByteSource::OfMemory(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto image = ksym::ElfImage::Parse(source);
  if (image) (void)ksym::FindV8(source, *image);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  ReadHeap(bytes);
  ReadPositions(bytes);
  ReadBaseline(bytes);
  FindEngine(bytes);
  return 0;
}
