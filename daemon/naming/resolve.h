// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/naming/frame_namer.h"
#include "daemon/naming/java_namer.h"
#include "daemon/naming/javascript_namer.h"
#include "daemon/naming/kernel_frames.h"
#include "daemon/naming/python_namer.h"
#include "daemon/naming/resolve_options.h"
#include "daemon/naming/user_names.h"
#include "daemon/naming/wait_namer.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/kernel/kernel_timeline.h"
#include "ksym/symbolizer.h"

namespace profd {

// RawProfile -> Profile, an interval at a time, so that names are ready when
// the capture ends. Borrows the kernel's symbols. Not thread-safe.
class Resolver {
 public:
  explicit Resolver(ResolveOptions options)
      : options_(options),
        kernel_(options),
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
  void SetKernelSymbols(const ksym::KernelTimeline& kernel) {
    kernel_.SetSymbols(kernel);
  }
  // Without them kernel frames are "[kernel]", for this reason.
  void SetNoKernelSymbols(ksym::Unresolved reason) {
    kernel_.SetNoSymbols(reason);
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

  ResolveOptions options_;
  KernelFrames kernel_;
  PythonNamer python_;
  JavaScriptNamer javascript_;
  JavaNamer java_;
  WaitNamer waits_;
  std::map<RawFrameKind, FrameNamer*> namers_;
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
