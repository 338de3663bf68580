// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/javascript_frames.h"

#include <optional>

#include "ksym/base/keyed_hash.h"
#include "ksym/runtime/v8/heap.h"

namespace profd {
namespace {

using ksym::V8Frame;
using ksym::V8Heap;
using ksym::V8Word;

// A number for code that the sampler has given none.
uint64_t NumberOf(const JavaScriptCode& code) {
  // No process can make code that has the number of another's.
  return ksym::HashWords(
      code.process.start_ns, code.process.pid, code.process.exec_count,
      code.shared.bits, code.identity.name, code.identity.script,
      uint64_t{code.identity.literal_id} << 32 | code.identity.script_id,
      code.bytecode ? code.bytecode->bits : code.pc.value);
}

// The function has that byte code, itself or behind its baseline code.
bool HasBytecode(const V8Heap& live, V8Word shared, V8Word bytecode) {
  const ksym::V8Layout& layout = live.layout();
  auto data = live.ReadWord(shared.object() + layout.shared_data);
  if (data && live.IsA(*data, layout.code)) {
    data = live.ReadWord(data->object() + layout.code_deoptimization);
  }
  return data && data->bits == bytecode.bits;
}

// Where the object is now. Closures are young, and young objects are moved
// soon; in place of its map one leaves its new address, without the tag, until
// that memory is used again.
V8Word Moved(const V8Heap& live, V8Word object) {
  constexpr int kMaxMoves = 2;
  constexpr uint64_t kAlignment = 8;
  for (int i = 0; i < kMaxMoves; ++i) {
    const auto map = live.ReadWord(object.object());
    if (!map || map->bits == 0 || map->bits % kAlignment != 0) break;
    object = {map->bits | 1};
  }
  return object;
}

// Finds the function, as the process's memory has it now; false: it was freed,
// or it is none.
bool FindFunction(const V8Heap& live, V8Word function, JavaScriptCode& code) {
  const ksym::V8Layout& layout = live.layout();
  function = Moved(live, function);
  const auto type = live.TypeOf(function);
  if (!type || *type < layout.first_function || *type > layout.last_function) {
    return false;
  }
  const auto shared = live.ReadWord(function.object() + layout.function_shared);
  if (!shared) return false;
  const auto identity = ksym::ReadV8FunctionIdentity(live, *shared);
  if (!identity) return false;
  if (code.bytecode && !HasBytecode(live, *shared, *code.bytecode))
    return false;
  code.shared = *shared;
  code.identity = *identity;
  return true;
}

// A native frame that may be a function's.
struct FrameExtent {
  ksym::Address fp;
  uint64_t bytes = 0;  // from the stack pointer to fp
  bool is_in_file = false;
};

// What the frame's words, in the copy, and the process's memory say.
std::optional<JavaScriptFrame> FrameWith(const V8Heap& copy,
                                         const FrameExtent& extent,
                                         const V8Heap& live) {
  const ksym::Address fp = extent.fp;
  if (extent.bytes < V8Frame::kFunction) return std::nullopt;
  const auto context = copy.ReadWord(fp - V8Frame::kContext);
  const auto function = copy.ReadWord(fp - V8Frame::kFunction);
  if (!context || !context->is_pointer() || !function ||
      !function->is_pointer()) {
    return std::nullopt;
  }
  JavaScriptFrame frame = {.native = 0, .code = {}, .index = 0};
  frame.code.layout = &live.layout();
  frame.code.is_late = true;
  if (extent.is_in_file) {
    // Other code in the file, as of functions that V8 brings along, has no byte
    // code there.
    if (extent.bytes < V8Frame::kOffset) return std::nullopt;
    const auto bytecode = copy.ReadWord(fp - V8Frame::kBytecode);
    const auto offset = copy.ReadWord(fp - V8Frame::kOffset);
    if (!bytecode || !offset || static_cast<uint32_t>(offset->bits) != 0 ||
        !live.IsA(*bytecode, live.layout().bytecode_array)) {
      return std::nullopt;
    }
    frame.code.bytecode = *bytecode;
    frame.index = static_cast<uint32_t>(offset->smi());
  }
  // Where that fails it is still a function, of which nothing more is known.
  FindFunction(live, *function, frame.code);
  return frame;
}

}  // namespace

std::vector<JavaScriptFrame> FindJavaScriptFrames(
    const NativeStack& native, std::span<const uint64_t> frames,
    const JavaScriptProcess& process) {
  const V8Heap copy(native.memory, process.layout);
  const V8Heap live(process.memory, process.layout);
  std::vector<JavaScriptFrame> found;
  for (const NativeStack::Rowless& rowless : native.rowless) {
    const size_t i = rowless.index;
    if (i + 1 >= native.stack_pointers.size() || i >= frames.size()) break;
    // The caller's part begins behind frame pointer and return address.
    const ksym::Address fp = {native.stack_pointers[i + 1] - 16};
    auto frame = FrameWith(copy,
                           {.fp = fp,
                            .bytes = fp.value - native.stack_pointers[i],
                            .is_in_file = rowless.is_in_file},
                           live);
    if (!frame) continue;
    frame->native = i;
    frame->code.process = process.id;
    frame->code.pc = {frames[i] - (i > 0 ? 1 : 0)};
    // Other frames are left by calls, or by a signal where nothing tells.
    if (!frame->code.bytecode && i == 0) {
      frame->index = JavaScriptNames::kNoCall;
    }
    frame->code.id = NumberOf(frame->code);
    found.push_back(*frame);
  }
  return found;
}

}  // namespace profd
