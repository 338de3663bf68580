// SPDX-License-Identifier: Apache-2.0
// A process's memory as anybody may make it: the bytes are a version, then the
// memory from 0x1000 on with a code object at its begin.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/cpython/accessors.h"
#include "ksym/runtime/cpython/code_object.h"
#include "ksym/runtime/cpython/eval_frame.h"
#include "ksym/runtime/cpython/interpreter.h"
#include "ksym/runtime/cpython/line_table.h"
#include "ksym/runtime/cpython/thread_frames.h"
#include "ksym/runtime/cpython/thread_place.h"
#include "ksym/runtime/memory.h"

namespace {

constexpr uint64_t kBegin = 0x1000;

// 3.8 to 3.15; the first ones are those that the corpus began with.
constexpr std::array<uint8_t, 8> kMinors = {11, 12, 13, 14, 8, 9, 10, 15};

void ReadCode(std::span<const std::byte> bytes) {
  const auto number = static_cast<uint8_t>(bytes.front());
  const auto layout = ksym::CpythonLayoutOf(
      {.major = 3, .minor = kMinors[number % kMinors.size()], .micro = 0});
  if (!layout) std::abort();
  ksym::PieceMemory memory;
  memory.Add({kBegin}, bytes.subspan(1));
  const auto code = ksym::ReadCpythonCode(memory, *layout, {kBegin});
  if (!code) return;
  constexpr size_t kMaxBytes = 4 * ksym::kMaxCpythonText + 8;
  if (code->name.size() > kMaxBytes || code->file.size() > kMaxBytes) {
    std::abort();
  }
  for (uint32_t index = 0; index < 64; ++index) {
    const auto line = ksym::CpythonLineAt(code->lines(), index);
    if (line && *line == 0) std::abort();
  }
}

// The same bytes as a thread's, its state, frames and code.
void ReadFrames(std::span<const std::byte> bytes) {
  const auto number = static_cast<uint8_t>(bytes.front());
  ksym::CpythonInterpreter interpreter;
  const auto layout = ksym::CpythonLayoutOf(
      {.major = 3, .minor = kMinors[number % kMinors.size()], .micro = 0});
  if (!layout) std::abort();
  interpreter.layout = *layout;
  interpreter.threads[0].kind = ksym::CpythonThreadPlace::Kind::kNearThread;
  interpreter.threads[1].kind = ksym::CpythonThreadPlace::Kind::kKey;
  interpreter.threads[1].address = {kBegin + 16};
  interpreter.lists = {
      .newest = {kBegin + 24}, .interpreter_next = 0, .interpreter_threads = 8};
  interpreter.code_type = {kBegin};
  interpreter.frame_type = ksym::ElfAddress{kBegin + 8};
  ksym::PieceMemory memory;
  memory.Add({kBegin}, bytes.subspan(1));
  const auto frames =
      ksym::ReadCpythonFrames(memory, interpreter, {.pointer = {kBegin}});
  if (!frames) return;
  size_t items = frames->runs.size();
  for (const auto& run : frames->runs) items += run.frames.size();
  if (items > ksym::kMaxCpythonItems + 1) std::abort();
}

void ReadLines(std::span<const std::byte> bytes) {
  using enum ksym::CpythonLayout::LineTable;
  for (const auto form : {kDeltas, kRanges, kLocations}) {
    const auto line =
        ksym::CpythonLineAt({.form = form, .table = bytes, .first_line = 1},
                            static_cast<uint32_t>(bytes.size()));
    if (line && *line == 0) std::abort();
  }
}

// Code as anybody may put it into a file.
void FollowCode(std::span<const std::byte> bytes) {
  const auto word = ksym::FindCpythonFrameWord(bytes, 1);
  if (word && (word->below_cfa < 16 || word->below_cfa % 8 != 0)) std::abort();
  (void)ksym::FindReturnedVariable(bytes, {kBegin});
  (void)ksym::FindReturnedMember(bytes);
  (void)ksym::FindReturnedWord(bytes, {kBegin}, {kBegin + 8});
}

void FindInterpreter(std::span<const std::byte> bytes) {
  const auto source = ksym::ByteSource::OfMemory(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto image = ksym::ElfImage::Parse(source);
  if (image) (void)ksym::FindCpython(source, *image);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  ReadCode(bytes);
  ReadFrames(bytes);
  FindInterpreter(bytes);
  ReadLines(bytes);
  FollowCode(bytes);
  return 0;
}
