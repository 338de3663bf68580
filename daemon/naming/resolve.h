// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/naming/frame_namer.h"
#include "daemon/naming/java_namer.h"
#include "daemon/naming/javascript_namer.h"
#include "daemon/naming/python_namer.h"
#include "daemon/naming/user_names.h"
#include "daemon/naming/wait_namer.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/kernel/kernel_timeline.h"
#include "ksym/symbolizer.h"

namespace profd {

struct ResolveOptions {
  // Whether frames keep their run-time addresses. They make stacks differ
  // that are equal by name, so only where the output shows them.
  enum class Addresses : uint8_t { kDrop, kKeep };
  Addresses addresses = Addresses::kDrop;
  // Whether frames of the kernel's core have as file_offset the bytes from
  // _stext to the looked-up instruction, and those of its modules the
  // instruction's address.
  enum class KernelOffsets : uint8_t { kDrop, kKeep };
  KernelOffsets kernel_offsets = KernelOffsets::kDrop;
  ksym::SymbolizerOptions::Demangle demangle =
      ksym::SymbolizerOptions::Demangle::kOn;
  // Whether the interpreter's own native frame stays behind those that it works
  // through.
  enum class RuntimeCalls : uint8_t { kHide, kKeep };
  RuntimeCalls runtime_calls = RuntimeCalls::kHide;
  RuntimeLines runtime_lines = RuntimeLines::kDrop;
};

// RawProfile -> Profile, an interval at a time, so that names are ready when
// the capture ends. Borrows the kernel's symbols. Not thread-safe.
class Resolver {
 public:
  explicit Resolver(ResolveOptions options)
      : options_(options),
        python_(options.runtime_lines),
        javascript_(options.runtime_lines),
        java_(options.runtime_lines) {
    for (const RawFrameKind kind : PythonNamer::kKinds) SetNamer(kind, python_);
    SetNamer(kJavaScriptCode, javascript_);
    for (const RawFrameKind kind : JavaNamer::kKinds) SetNamer(kind, java_);
    SetNamer(kWaitReason, waits_);
  }
  // Its own namer is one of those it calls.
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // The kernel's symbols from now on.
  void SetKernelSymbols(const ksym::KernelTimeline& kernel);
  // Without them kernel frames are "[kernel]", for this reason.
  void SetNoKernelSymbols(ksym::Unresolved reason) {
    kernel_ = nullptr;
    no_kernel_reason_ = reason;
  }

  // Names user frames of this kind, which is not native code; borrowed.
  // Those of a kind without a namer are "[unknown]".
  void SetNamer(RawFrameKind kind, FrameNamer& namer) {
    namers_[kind] = &namer;
  }

  // Names everything in `raw` and adds it; `user` is asked for each distinct
  // address of a process once. Cost: these lookups, and some nanoseconds per
  // frame of a distinct stack.
  void Add(const RawProfile& raw, UserNames& user, ProfileBuilder& builder);

 private:
  struct NamedStack {
    StackState state = StackState::kNone;
    CallStackId frames = 0;
  };
  class Interval;

  // An address of a stack, and the one that is looked up for it.
  struct Sampled {
    uint64_t address = 0;
    ksym::Address lookup;
  };
  struct NamedFrame {
    FrameId id = 0;
    // It only calls an interpreter for a function, whose name it has.
    bool is_trampoline = false;
  };
  // A text that was interned last.
  struct KnownText {
    std::string_view text;
    StringId id = 0;
  };
  // The same, for texts of UserNames, which stay where they are: what is at the
  // same place is the same text.
  static StringId Intern(std::string_view text, KnownText& last,
                         ProfileBuilder& builder);
  NamedFrame UserFrame(UserNames& user, const ksym::ProcessImage* image,
                       Sampled sampled, ProfileBuilder& builder);
  // Appends what a frame that is not native code stands for.
  void NameOther(const RawFrame& raw, const ksym::ProcessImage* image,
                 ProfileBuilder& builder, std::vector<FrameId>& leaf_first);
  // `is_entry` becomes true if it is where an interrupt begins.
  FrameId KernelFrame(uint64_t sampled, ksym::Address lookup,
                      ProfileBuilder& builder, bool& is_entry);
  // Whether it is the kernel's own function of one of these names.
  bool IsKernelFunction(ksym::Address lookup,
                        std::span<const std::string_view> names);
  // Which interrupt the kernel's stack is of; empty: that is not known.
  std::string InterruptOf(const PackedStack& stack);
  void NameKernelFrame(const ksym::KernelSymbol& symbol, Frame& frame,
                       ProfileBuilder& builder) const;
  void SetKernelOffset(const ksym::KernelSymbol& symbol, ksym::Address lookup,
                       Frame& frame) const;

  ResolveOptions options_;
  const ksym::KernelTimeline* kernel_ = nullptr;
  std::optional<ksym::Address> kernel_text_;  // of _stext
  ksym::Unresolved no_kernel_reason_ = ksym::Unresolved::kNoPermission;
  PythonNamer python_;
  JavaScriptNamer javascript_;
  JavaNamer java_;
  WaitNamer waits_;
  std::map<RawFrameKind, FrameNamer*> namers_;
  ksym::SymbolNameBuffer name_buffer_;
  std::vector<FrameId> frames_;  // room for one stack
  // The last user frame had these: most stacks stay in a file for some frames.
  KnownText module_;
  KnownText build_id_;
};

// Asks again for the user frames that a file's symbols could not name; for when
// the symbolizer has a source of debug files. Cost: a lookup per such frame,
// and what the source takes per file.
void ResolveAgain(ksym::Symbolizer& user, Profile& profile);

}  // namespace profd
