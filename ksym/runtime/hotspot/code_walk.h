// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/runtime/hotspot/code_blob.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/memory.h"
#include "ksym/unwind/stack_walk.h"

namespace ksym {

// The code that a JVM made, as far as it was read. Certain while the threads
// that are in it do not run, as code that a thread is in stays. Not
// thread-safe.
class HotspotCode {
 public:
  // Blobs that are kept; with more all are read anew.
  static constexpr size_t kMaxBlobs = 4096;

  HotspotCode(const HotspotLayout& layout, std::vector<HotspotHeap> heaps)
      : layout_(layout), heaps_(std::move(heaps)) {}

  const HotspotLayout& layout() const { return layout_; }
  bool Has(Address code) const {
    return FindHotspotHeap(heaps_, code) != nullptr;
  }
  // Null: there is none. Valid until the next call.
  const HotspotBlob* BlobAt(const Memory& memory, Address code);

 private:
  HotspotLayout layout_;
  std::vector<HotspotHeap> heaps_;
  std::map<uint64_t, HotspotBlob> blobs_;  // by the begin of their code
};

// A frame of a stack in code of the JVM.
struct HotspotFrame {
  size_t number = 0;  // leaf first, among all frames
  enum class Kind : uint8_t { kCompiled, kInterpreted, kStub };
  Kind kind = Kind::kStub;
  // The nmethod, the Method, or the stub's blob; and what tells it from one
  // that takes its place: 16 bits of the compile id, or of the address of the
  // ConstMethod / 8.
  Address code;
  uint16_t tag = 0;
  uint32_t place = 0;  // in the code, or of the bytecode
};

// What became of the thread whose stack is walked since it was copied. If it
// has gone on, the code that was there may have been freed by now: then each
// frame of compiled code has to be at a place where that calls.
enum class HotspotThread : uint8_t { kIsThere, kWentOn };

// The steps through that code, by the same rules as bpf/runtime/hotspot.bpf.h:
// a blob says how large its frames are, the interpreter's are led through by
// the frame pointer. Borrows both; for one walk.
class HotspotSteps final : public CodeSteps {
 public:
  HotspotSteps(HotspotCode& code, const Memory& memory,
               HotspotThread thread = HotspotThread::kIsThere)
      : code_(code), memory_(memory), thread_(thread) {}

  std::optional<CodeStep> Step(const CodeFrame& frame,
                               const ReadWord& stack) override;
  // Those that the walk found and did not take back.
  const std::vector<HotspotFrame>& frames() const { return frames_; }

 private:
  class OneStep;

  HotspotCode& code_;
  const Memory& memory_;
  HotspotThread thread_;
  std::vector<HotspotFrame> frames_;
};

}  // namespace ksym
