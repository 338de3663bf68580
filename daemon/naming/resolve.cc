// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/resolve.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "daemon/naming/frame_cache.h"
#include "daemon/naming/other_frames.h"
#include "daemon/naming/scheduler_frames.h"
#include "daemon/naming/symbol_text.h"
#include "daemon/profile/profile_terms.h"
#include "ksym/base/bounded_name.h"

namespace profd {
namespace {

StackState StateWithout(StackId id) {
  if (id == kFaultedStack) return StackState::kFaulted;
  if (id == kCollidedStack) return StackState::kCollided;
  return StackState::kNone;
}

// A thread has the name that it gives itself, which may be that of a mark.
std::string CommandOf(const RawWaker& waker) {
  std::string comm(waker.comm.view());
  if (comm == kNoWakerMark || comm == kWakerFrame.divider) comm[0] = '_';
  return comm;
}

// The mark in place of the root that a waker's stack lacks.
std::string MarkOfRoot(StackState state) {
  const auto cause = CauseOf(state);
  return cause ? "[truncated: " + std::string(Name(*cause)) + "]"
               : "[" + std::string(Name(state)) + "]";
}

// With -X perf, CPython calls its evaluation loop for each function through
// code that it makes, and that a perf map names (Python/perf_trampoline.c).
bool IsTrampoline(const ksym::UserSymbol& symbol) {
  return symbol.module.empty() && symbol.name.starts_with("py::");
}

}  // namespace

// One call of Add: stacks that several samples share are named once, and so are
// addresses that several stacks of a process share.
class Resolver::Interval {
 public:
  Interval(Resolver& resolver, const RawProfile& raw, UserNames& user,
           ProfileBuilder& builder)
      : resolver_(resolver), raw_(raw), user_names_(user), builder_(builder) {}

  void Run() {
    builder_.Reserve({.samples = raw_.samples.size(),
                      .stacks = raw_.stacks.size(),
                      .frames_of_stacks = raw_.stacks.CountFrames()});
    named_.resize(raw_.stacks.size());
    for (const RawSample& raw : raw_.samples) {
      const NamedStack user = UserStack(raw.process, raw.user_stack);
      const NamedStack kernel = KernelStack(raw.kernel_stack);
      builder_.AddSample({.comm = CommOf(raw),
                          .pid = raw.process.pid,
                          .tid = raw.tid,
                          .cgroup = Cgroup(raw.process),
                          .labels = Labels(raw.process),
                          .user_state = user.state,
                          .kernel_state = kernel.state,
                          .kind = raw.kind,
                          .slice = raw.slice,
                          .user = user.frames,
                          .kernel = kernel.frames,
                          .count = raw.count,
                          .value = raw.value});
    }
    builder_.Add(raw_.accounting);
  }

 private:
  // One address space.
  struct Space {
    explicit Space(uint32_t its_number) : number(its_number) {}
    uint32_t number;  // from 1 on
    OtherFrames others;
  };
  // A stack as it was named last: the same addresses may be those of several
  // processes, but samples of one process follow each other for the most part.
  struct Named {
    uint32_t space = 0;  // 0: not yet
    NamedStack stack;
  };

  // Most samples follow one of the same thread.
  StringId CommOf(const RawSample& sample) {
    if (comm_ != sample.comm) {
      comm_ = sample.comm;
      comm_id_ = builder_.Intern(comm_.view());
    }
    return comm_id_;
  }

  StringId Cgroup(const ksym::ProcessId& process) {
    if (raw_.cgroups.empty()) return 0;
    const auto found = raw_.cgroups.find(process);
    return found == raw_.cgroups.end()
               ? 0
               : builder_.Intern(ksym::BoundPath(found->second, room_));
  }

  LabelSetId Labels(const ksym::ProcessId& process) {
    if (raw_.labels.empty()) return 0;
    const auto found = raw_.labels.find(process);
    if (found == raw_.labels.end()) return 0;
    const auto [known, is_new] = label_sets_.try_emplace(found->second.get());
    if (is_new) known->second = builder_.AddLabels(*found->second);
    return known->second;
  }

  NamedStack UserStack(const ksym::ProcessId& process, StackId id) {
    if (id < kFirstStackId) return {StateWithout(id), 0};
    EnterSpace(process);
    const ksym::ProcessImage* image = image_;
    return NameOnce(
        id, *space_,
        [&](uint64_t address, FrameCache::Place place) {
          const auto frame = resolver_.UserFrame(
              user_names_, image,
              {.address = address, .lookup = LookupAddress(address, place)},
              builder_);
          if (frame.is_trampoline) trampolines_.insert(frame.id);
          return frame.id;
        },
        [](FrameId) { return FrameCache::Place::kCaller; });
  }

  void EnterSpace(const ksym::ProcessId& process) {
    if (space_ != nullptr && process == process_) return;
    process_ = process;
    const auto found = raw_.images.find(process);
    image_ = found == raw_.images.end() ? nullptr : &found->second;
    const auto number = static_cast<uint32_t>(user_.size() + 2);
    space_ = &user_.try_emplace(image_, number).first->second;
  }

  NamedStack KernelStack(StackId id) {
    if (id < kFirstStackId) return {StateWithout(id), 0};
    return NameOnce(
        id, kernel_,
        [&](uint64_t address, FrameCache::Place place) {
          return KernelFrame(address, LookupAddress(address, place));
        },
        [this](FrameId callee) { return PlaceBelow(callee); });
  }

  FrameId KernelFrame(uint64_t address, ksym::Address lookup) {
    const auto [frame, is_entry] =
        resolver_.kernel_.Add(address, lookup, builder_);
    const bool is_known = std::ranges::find(entries_, frame) != entries_.end();
    if (is_entry && !is_known) entries_.push_back(frame);
    return frame;
  }

  // How many frames of a waiting thread's kernel stack, or of a waker's, are
  // the scheduler's.
  size_t CountScheduler(const PackedStack& stack) {
    return (waker_ ? waking_ : waiting_)
        .Count(stack, [this](uint64_t address, SchedulerFrames::Names names) {
          return resolver_.kernel_.IsFunction(
              LookupAddress(address, FrameCache::Place::kCaller), names);
        });
  }

  // The place of the kernel frame below another one.
  FrameCache::Place PlaceBelow(FrameId frame) const {
    return std::ranges::find(entries_, frame) == entries_.end()
               ? FrameCache::Place::kCaller
               : FrameCache::Place::kLeaf;
  }

  template <typename NameFrame, typename PlaceOfCaller>
  NamedStack NameOnce(StackId id, Space& space, const NameFrame& name_frame,
                      const PlaceOfCaller& place_of_caller) {
    const auto index = raw_.stacks.IndexOf(id, last_index_);
    if (!index) return {};
    last_index_ = *index;
    Named& named = named_[*index];
    if (named.space != space.number) {
      named = {space.number, Name(raw_.stacks.At(*index), space, name_frame,
                                  place_of_caller)};
    }
    return named.stack;
  }

  template <typename NameFrame, typename PlaceOfCaller>
  NamedStack Name(const PackedStack& stack, Space& space,
                  const NameFrame& name_frame,
                  const PlaceOfCaller& place_of_caller) {
    std::vector<FrameId>& frames = resolver_.frames_;
    if (!stack.mixed && !waker_) {
      NameNative(stack, space, name_frame, place_of_caller);
      return {StateOf(stack.end), builder_.AddStack(frames)};
    }
    frames.clear();
    auto place = FrameCache::Place::kLeaf;
    bool is_of_interpreter = false;  // the frame before
    bool is_hidden = false;  // the frame before, in favour of a runtime's
    std::optional<WakerId> waker;
    // The kernel's stacks of waits alone are mixed.
    size_t skipped = (stack.mixed || waker_) && &space == &kernel_
                         ? CountScheduler(stack)
                         : 0;
    ForEachFrame(stack, [&](const RawFrame& raw) {
      if (skipped > 0) {
        --skipped;
        place = FrameCache::Place::kCaller;
        return;
      }
      if (!raw.is_address()) {
        const RuntimeKind kind = RuntimeKindOf(raw.kind);
        is_of_interpreter = kind.has_interpreter;
        if (raw.kind == kWaker) {
          waker = raw.value;
          return;
        }
        // A frame of the table is the same one in each process.
        AppendOther(raw, kind.is_in_table ? of_table_ : space.others, frames);
        place = FrameCache::Place::kCaller;
        return;
      }
      const bool hides = std::exchange(is_of_interpreter, false);
      const bool is_callee_hidden =
          std::exchange(is_hidden, hides && HidesCalls());
      if (is_hidden) {
        place = FrameCache::Place::kCaller;
        return;
      }
      const uint64_t address = raw.value;
      const FrameId frame =
          named_frames_.Find(FrameCache::Key::Of(address, space.number, place),
                             [&] { return name_frame(address, place); });
      place = place_of_caller(frame);
      if (is_callee_hidden && trampolines_.contains(frame)) return;
      frames.push_back(frame);
    });
    const StackState state = StateOf(stack.end);
    // A waker has none, whatever its stacks say.
    if (!waker || waker_) return {state, builder_.AddStack(frames)};
    const std::vector<FrameId> waiting = frames;
    std::vector<FrameId> all = WakerFrames(*waker);
    all.insert(all.end(), waiting.begin(), waiting.end());
    return {state, builder_.AddStack(all)};
  }

  // Sets resolver_.frames_ to those of a stack of native code alone, as most
  // are: of these none hides another one.
  template <typename NameFrame, typename PlaceOfCaller>
  void NameNative(const PackedStack& stack, const Space& space,
                  const NameFrame& name_frame,
                  const PlaceOfCaller& place_of_caller) {
    std::vector<FrameId>& frames = resolver_.frames_;
    // A frame takes a byte or more.
    frames.resize(stack.frames.size());
    size_t count = 0;
    auto place = FrameCache::Place::kLeaf;
    ForEachAddress(stack, [&](uint64_t address) {
      const FrameId frame =
          named_frames_.Find(FrameCache::Key::Of(address, space.number, place),
                             [&] { return name_frame(address, place); });
      place = place_of_caller(frame);
      frames[count++] = frame;
    });
    frames.resize(count);
  }

  // From its leaf to the divider between it and the thread that waited.
  std::vector<FrameId> WakerFrames(WakerId id) {
    std::vector<FrameId> frames;
    const auto mark = [&](std::string_view name) {
      frames.push_back(builder_.AddFrame(
          {.name = builder_.Intern(name), .kind = &kWakerFrame}));
    };
    const auto found = raw_.wakers.find(id);
    if (found == raw_.wakers.end()) {
      mark(kNoWakerMark);
    } else if (found->second.is_interrupt) {
      mark(InterruptText(found->second.kernel_stack));
    } else {
      const RawWaker& waker = found->second;
      waker_ = true;
      const StackState state = AppendThread(waker, frames);
      waker_ = false;
      if (state > StackState::kWhole) mark(MarkOfRoot(state));
      mark(CommandOf(waker));
    }
    mark(kWakerFrame.divider);
    return frames;
  }

  std::string InterruptText(StackId kernel_stack) {
    const auto stack = raw_.stacks.Find(kernel_stack);
    const std::string name = stack ? resolver_.kernel_.InterruptOf(*stack) : "";
    return name.empty() ? std::string(kInterruptMark)
                        : "[woken by interrupt: " + name + "]";
  }

  // Appends the frames of a thread that woke another one; returns how those of
  // the user end.
  StackState AppendThread(const RawWaker& waker, std::vector<FrameId>& frames) {
    const auto append = [&](const NamedStack& stack) {
      const auto some = builder_.Stack(stack.frames);
      frames.insert(frames.end(), some.begin(), some.end());
    };
    append(KernelStack(waker.kernel_stack));
    const NamedStack user = UserStack(waker.process, waker.user_stack);
    append(user);
    return user.state;
  }

  bool HidesCalls() const {
    return resolver_.options_.runtime_calls ==
           ResolveOptions::RuntimeCalls::kHide;
  }

  void AppendOther(const RawFrame& raw, OtherFrames& others,
                   std::vector<FrameId>& frames) {
    const auto& named = others.Find(raw, [&](std::vector<FrameId>& new_ones) {
      resolver_.NameOther(raw, image_, builder_, new_ones);
    });
    frames.insert(frames.end(), named.begin(), named.end());
  }

  Resolver& resolver_;
  const RawProfile& raw_;
  UserNames& user_names_;
  ProfileBuilder& builder_;
  std::vector<Named> named_;  // by index of the stack
  uint32_t last_index_ = 0;   // of a stack
  FrameCache named_frames_;
  std::unordered_map<const ksym::ProcessImage*, Space> user_;
  Space kernel_ = Space(1);
  OtherFrames of_table_;          // of raw_.runtime_frames
  std::vector<FrameId> entries_;  // of interrupts; a handful
  std::unordered_set<FrameId> trampolines_;
  SchedulerFrames waiting_ = SchedulerFrames::OfWaits();
  SchedulerFrames waking_ = SchedulerFrames::OfWakers();
  bool waker_ = false;  // the stacks that are named are a waker's
  // The process of the last sample with a user stack.
  ksym::ProcessId process_;
  const ksym::ProcessImage* image_ = nullptr;
  Space* space_ = nullptr;
  Comm comm_;  // of the last sample
  StringId comm_id_ = 0;
  std::string room_;  // for one path
  std::unordered_map<const LabelSet*, LabelSetId> label_sets_;
};

void Resolver::Add(const RawProfile& raw, UserNames& user,
                   ProfileBuilder& builder) {
  python_.Use(raw.runtime_frames);
  javascript_.Use(raw.runtime_frames);
  java_.Use(raw.runtime_frames);
  module_ = {};
  build_id_ = {};
  Interval(*this, raw, user, builder).Run();
}

StringId Resolver::Intern(std::string_view text, KnownText& last,
                          ProfileBuilder& builder) {
  if (text.data() != last.text.data() || text.size() != last.text.size()) {
    last = {text, builder.Intern(text)};
  }
  return last.id;
}

Resolver::NamedFrame Resolver::UserFrame(UserNames& user,
                                         const ksym::ProcessImage* image,
                                         Sampled sampled,
                                         ProfileBuilder& builder) {
  Frame frame = {.kind = &kUserFrame};
  if (options_.addresses == ResolveOptions::Addresses::kKeep) {
    frame.address = sampled.address;
  }
  if (image == nullptr) {
    frame.name = builder.Intern("[unknown]");
    frame.reason = ksym::Unresolved::kNoProcess;
    return {.id = builder.AddFrame(frame)};
  }
  const ksym::UserSymbol symbol = user.Find(*image, sampled.lookup);
  frame.object = Intern(symbol.module, module_, builder);
  frame.build_id = Intern(symbol.build_id, build_id_, builder);
  frame.reason = symbol.reason;
  frame.file_offset = symbol.file_offset.value;
  frame.symbol_offset = symbol.symbol_offset;
  if (!symbol.name.empty()) {
    frame.name = builder.Intern(symbol.name);
    // A perf map has a name for memory that no file is in.
    if (symbol.module.empty()) frame.kind = &kJitFrame;
  } else if (symbol.function_start && !symbol.module.empty()) {
    frame.name =
        builder.Intern(FunctionAt(symbol.module, *symbol.function_start));
  } else if (!symbol.module.empty()) {
    frame.name = builder.Intern(InBrackets(symbol.module));
  } else {
    frame.name = builder.Intern("[unknown]");
  }
  return {.id = builder.AddFrame(frame), .is_trampoline = IsTrampoline(symbol)};
}

void Resolver::NameOther(const RawFrame& raw, const ksym::ProcessImage* image,
                         ProfileBuilder& builder,
                         std::vector<FrameId>& leaf_first) {
  const auto namer = namers_.find(raw.kind);
  if (namer != namers_.end()) {
    namer->second->Name(raw, image, builder, leaf_first);
    return;
  }
  leaf_first.push_back(
      builder.AddFrame({.name = builder.Intern("[unknown]"),
                        .reason = ksym::Unresolved::kNoSymbol}));
}

void ResolveAgain(ksym::Symbolizer& user, Profile& profile) {
  for (Frame& frame : profile.frames) {
    const bool of_file = frame.reason == ksym::Unresolved::kNoSymbols ||
                         frame.reason == ksym::Unresolved::kNoSymbol;
    if (!frame.kind->is_in_file || !of_file || frame.build_id == 0) {
      continue;
    }
    const ksym::UserSymbol symbol =
        user.ResolveAgain(profile.String(frame.build_id), {frame.file_offset});
    if (symbol.name.empty()) continue;
    frame.name = profile.strings.Intern(symbol.name);
    frame.symbol_offset = symbol.symbol_offset;
    frame.reason = ksym::Unresolved::kNone;
  }
}

}  // namespace profd
