// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/copied_code.h"

#include <cstddef>
#include <expected>
#include <span>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/base/steady_clock.h"
#include "daemon/capture/sampled_count.h"
#include "daemon/capture/thread_runs.h"
#include "daemon/profile/runtime_frame.h"
#include "daemon/runtime/java_code.h"
#include "ksym/runtime/memory.h"

namespace profd {
namespace {

RawFrameKind RawKindOf(ksym::HotspotFrame::Kind kind) {
  using Kind = ksym::HotspotFrame::Kind;
  if (kind == Kind::kCompiled) return kJavaCompiled;
  return kind == Kind::kInterpreted ? kJavaInterpreted : kJavaStub;
}

// As the sampler notes them; see bpf/runtime/hotspot_abi.h.
RuntimeCode CodeOf(const ksym::HotspotFrame& frame) {
  constexpr uint64_t kAddressBits = (uint64_t{1} << kJavaTagShift) - 1;
  return {.native = frame.number,
          .kind = RawKindOf(frame.kind),
          .code = (frame.code.value & kAddressBits) | uint64_t{frame.tag}
                                                          << kJavaTagShift,
          .index = frame.place};
}

// Only a walk over all threads tells how often the thread had run.
bool IsOfSleeper(const profile_copy_record& copy) { return copy.thread != 0; }

bool IsOld(const profile_copy_record& copy) {
  constexpr std::chrono::nanoseconds kMax = CopiedCode::kMaxAge;
  return NowNs() >= copy.time_ns + static_cast<uint64_t>(kMax.count());
}

// A walk through what was not code of these frames hardly gets there.
bool IsWhole(ksym::StackEnd end) {
  return end == ksym::StackEnd::kOutermost ||
         end == ksym::StackEnd::kZeroFramePointer ||
         end == ksym::StackEnd::kDepthLimit;
}

}  // namespace

struct CopiedCode::Process {
  ksym::HotspotLayout layout;
  std::vector<ksym::HotspotHeap> heaps;
  // What was read of its code from that time on, by CLOCK_MONOTONIC.
  std::unique_ptr<ksym::HotspotCode> code = {};
  uint64_t since_ns = 0;             // 0: nothing was
  std::chrono::nanoseconds spent{};  // in this interval, on sleeping threads
  TimeAllowance time = {kMaxCodeTimeOfOne, kCodeShareOfOne,
                        SteadyClock::now()};  // of others
  // Its memory did not answer once, which may be meant: nothing is read of it
  // any more.
  bool is_silent = false;
};

// Memory of the process that is read while there is time.
struct CopiedCode::Walk final : ksym::Memory {
  Walk(CopiedCode& all, Process& process, ksym::HotspotCode& code,
       const profile_copy_record& copy)
      : all_(all),
        process_(process),
        tid_(copy.tid),
        is_asleep_(IsOfSleeper(copy)),
        steps_(code, *this,
               is_asleep_ ? ksym::HotspotThread::kIsThere
                          : ksym::HotspotThread::kWentOn) {}

  size_t ReadSome(ksym::Address address,
                  std::span<std::byte> out) const override {
    if (!HasTime()) {
      is_out_of_time_ = true;
      return 0;
    }
    const auto begin = SteadyClock::now();
    const size_t bytes = is_asleep_
                             ? all_.memory_.Read(tid_, address.value, out)
                             : all_.pages_.ReadSome(address, out);
    const auto time = SteadyClock::now() - begin;
    Spend(time);
    if (bytes == 0 && time >= ForeignMemory::kPatience) {
      process_.is_silent = true;
    }
    return bytes;
  }

  bool HasTime() const {
    if (process_.is_silent) return false;
    if (is_asleep_) {
      return all_.spent_ < kMaxCodeTime && process_.spent < kMaxCodeTimeOfOne;
    }
    const auto now = SteadyClock::now();
    return all_.time_.HasAny(now) && process_.time.HasAny(now);
  }
  bool is_out_of_time() const { return is_out_of_time_; }
  ksym::HotspotSteps& steps() { return steps_; }

 private:
  void Spend(std::chrono::nanoseconds time) const {
    if (is_asleep_) {
      all_.spent_ += time;
      process_.spent += time;
    } else {
      all_.time_.Spend(time);
      process_.time.Spend(time);
    }
  }

  CopiedCode& all_;
  Process& process_;
  uint32_t tid_;
  bool is_asleep_;
  ksym::HotspotSteps steps_;
  mutable bool is_out_of_time_ = false;
};

// The frame pointer leads nowhere in such code: it is used for other things.
class CopiedCode::Ends final : public ksym::CodeSteps {
 public:
  explicit Ends(const std::vector<ksym::HotspotHeap>& heaps) : heaps_(heaps) {}

  std::optional<ksym::CodeStep> Step(const ksym::CodeFrame& frame,
                                     const ReadWord& /*stack*/) override {
    if (ksym::FindHotspotHeap(heaps_, frame.at) == nullptr) return std::nullopt;
    has_ended_ = true;
    return std::unexpected(ksym::StackEnd::kNoTable);
  }

  // It was come to such code.
  bool has_ended() const { return has_ended_; }

 private:
  const std::vector<ksym::HotspotHeap>& heaps_;
  bool has_ended_ = false;
};

CopiedCode::CopiedCode()
    : time_(kMaxCodeTime, kCodeShare, SteadyClock::now()) {}
CopiedCode::~CopiedCode() = default;

void CopiedCode::Add(const ksym::ProcessId& process,
                     const ksym::HotspotLayout& layout,
                     std::vector<ksym::HotspotHeap> heaps) {
  processes_.insert_or_assign(
      process, Process{.layout = layout, .heaps = std::move(heaps)});
}

void CopiedCode::Forget(const ksym::ProcessId& process) {
  processes_.erase(process);
}

ksym::CodeSteps* CopiedCode::Begin(const profile_copy_record& copy) {
  walk_.reset();
  ends_.reset();
  const auto found = processes_.find(ProcessOf(copy.key));
  if (found == processes_.end()) return nullptr;
  Process& process = found->second;
  ends_ = std::make_unique<Ends>(process.heaps);
  if (!IsOfSleeper(copy) && IsOld(copy)) return ends_.get();
  walk_ = std::make_unique<Walk>(*this, process, CodeFor(copy, process), copy);
  return &walk_->steps();
}

// Code that was read before the stack was copied may be gone by then.
ksym::HotspotCode& CopiedCode::CodeFor(const profile_copy_record& copy,
                                       Process& process) {
  const bool is_new = process.since_ns <= copy.time_ns;
  if (is_new) {
    process.since_ns = NowNs();
    process.code =
        std::make_unique<ksym::HotspotCode>(process.layout, process.heaps);
  }
  if (is_new || pages_of_ != copy.key.tgid) pages_.Begin(copy.key.tgid);
  pages_of_ = copy.key.tgid;
  return *process.code;
}

// All that was read is of the time of the stack.
bool CopiedCode::IsStill(const profile_copy_record& copy, ksym::StackEnd end,
                         bool is_out_of_time) {
  if (IsOfSleeper(copy)) {
    if (ReadThreadRuns(copy.tid) == copy.runs) return true;
    ++sleepers_.went_on;
    return false;
  }
  if (IsWhole(end)) return true;
  if (!is_out_of_time) ++copies_.uncertain;
  return false;
}

std::optional<std::vector<RuntimeCode>> CopiedCode::End(
    const profile_copy_record& copy, ksym::StackEnd end) {
  std::vector<RuntimeCode> codes;
  const auto walk = std::exchange(walk_, nullptr);
  if (!walk) {
    if (ends_ && ends_->has_ended()) ++copies_.too_old;
    return codes;
  }
  if (walk->is_out_of_time()) {
    ++(IsOfSleeper(copy) ? sleepers_.out_of_time : copies_.out_of_time);
  }
  if (walk->steps().frames().empty()) return codes;
  // Last, when all is read.
  if (!IsStill(copy, end, walk->is_out_of_time())) return std::nullopt;
  ++(IsOfSleeper(copy) ? sleepers_.read : copies_.read);
  for (const ksym::HotspotFrame& frame : walk->steps().frames()) {
    codes.push_back(CodeOf(frame));
  }
  return codes;
}

ksym::CodeSteps* CopiedCode::EndInCode() { return ends_.get(); }

void CopiedCode::EndInterval() {
  spent_ = {};
  for (auto& [id, process] : processes_) {
    process.spent = {};
    // Later copies would not use it.
    process.code = nullptr;
    process.since_ns = 0;
  }
}

}  // namespace profd
