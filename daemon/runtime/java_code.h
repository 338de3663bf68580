// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/profile/raw_stack_table.h"
#include "daemon/profile/runtime_frame.h"
#include "daemon/runtime/code_namer.h"
#include "ksym/base/address.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/result.h"
#include "ksym/runtime/hotspot/compiled_code.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/hotspot/method.h"
#include "ksym/runtime/memory.h"

namespace profd {

// RuntimeCode::code has an address below this bit, and above it a tag: the low
// bits of an nmethod's compile id, or of a ConstMethod's address / 8.
inline constexpr int kJavaTagShift = 48;

// Whether the methods that are inlined at a place are known, or why not.
enum class JavaInlining : uint8_t {
  kKnown,
  kNotDescribed,  // the JVM says nothing of that place
  kTooMuch,       // more than a bound
  kCorrupt,       // it does not hold up
};

// The frames of a piece of code, leaf first: inlined methods, then the one that
// was compiled; that one alone where the others are not known. Empty: the code
// is not there any more.
struct JavaFrames {
  struct Frame {
    RawFrameKind kind = kJavaStub;
    RuntimeFrame frame;
  };
  std::vector<Frame> frames;
  JavaInlining inlining = JavaInlining::kKnown;
};

// The code that the JVM of one process made, as far as it was read. Code may go
// at any time: before and after reading, it is checked to be still what the
// sampler saw. Not thread-safe.
class JavaCode {
 public:
  explicit JavaCode(const ksym::HotspotLayout& layout) : layout_(layout) {}

  // Some 20 reads of a method at first sight, then seven.
  JavaFrames FramesOf(const ksym::Memory& memory, const RuntimeCode& code);
  // The memory of all that is kept, about.
  size_t bytes() const { return bytes_; }

 private:
  struct Method {
    ksym::HotspotMethodIdentity identity;
    ksym::HotspotMethod method;
  };
  // Code by the sampler's number; without scopes why there are none.
  using Compiled = ksym::Result<ksym::HotspotCompiledCode>;

  JavaFrames CompiledFrames(const ksym::Memory& memory,
                            const RuntimeCode& code);
  JavaFrames InterpretedFrames(const ksym::Memory& memory,
                               const RuntimeCode& code);
  JavaFrames StubFrames(const ksym::Memory& memory,
                        const RuntimeCode& code) const;
  // Null: it went meanwhile, or there was no more to be read, so that it is
  // tried again. Valid until the next call.
  const Compiled* CompiledAt(const ksym::Memory& memory,
                             const RuntimeCode& code);
  // Null: there is none. Valid until the next call.
  const Method* MethodAt(const ksym::Memory& memory, ksym::Address address);
  // How a scope becomes a frame.
  struct ScopeUse {
    RawFrameKind kind = kJavaCompiled;
    bool is_near = false;  // its line is one near it
  };
  bool AddScope(const ksym::Memory& memory, const ksym::HotspotScope& scope,
                ScopeUse use, JavaFrames& all);

  ksym::HotspotLayout layout_;
  std::unordered_map<uint64_t, Compiled, ksym::NumberHash> compiled_;
  // By address.
  std::unordered_map<uint64_t, Method, ksym::NumberHash> methods_;
  size_t bytes_ = 0;
};

}  // namespace profd
