// SPDX-License-Identifier: Apache-2.0
// Walks at every instruction of a real program.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ksym/unwind/describe_row.h"
#include "tests/ksym/unwind/frames_fixture.h"
#include "tests/ksym/unwind/loaded_code.h"

namespace ksym {
namespace {

constexpr size_t kRedZone = 128;
constexpr size_t kMaxCopy = size_t{16} << 10;

// A child of this process that is traced from the first instruction of
// RunWorkload() on.
class TracedChild {
 public:
  TracedChild() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    ::_exit(RunWorkload() == 0 ? 1 : 0);
  }
  TracedChild(const TracedChild&) = delete;
  TracedChild& operator=(const TracedChild&) = delete;
  ~TracedChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // The next instruction; false when the child is not there any more.
  bool Step() {
    return ::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) == 0 && Wait();
  }
  bool Wait() {
    int status = 0;
    return ::waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status) &&
           ::ptrace(PTRACE_GETREGS, pid_, nullptr, &registers_) == 0;
  }

  const user_regs_struct& registers() const { return registers_; }

  size_t Read(uint64_t address, std::span<std::byte> out) const {
    const iovec local = {out.data(), out.size()};
    const iovec remote = {reinterpret_cast<void*>(address), out.size()};
    const ssize_t got = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }
  uint64_t ReadWord(uint64_t address) const {
    uint64_t word = 0;
    Read(address, std::as_writable_bytes(std::span(&word, 1)));
    return word;
  }

 private:
  pid_t pid_;
  user_regs_struct registers_ = {};
};

std::array<uint64_t, kMachineRegisters> ByDwarfNumber(
    const user_regs_struct& r) {
  return {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
          r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15};
}

// The return addresses on the stack as calls and returns make them.
class ShadowStack {
 public:
  explicit ShadowStack(std::vector<uint64_t> callers)
      : outer_(std::move(callers)) {}

  void Follow(uint64_t old_ip, uint64_t old_rsp, const TracedChild& child) {
    const auto& now = child.registers();
    while (!calls_.empty() && calls_.back().slot < now.rsp) calls_.pop_back();
    if (now.rsp != old_rsp - 8 || now.rip == old_ip) return;
    const uint64_t top = child.ReadWord(now.rsp);
    // Only a call leaves the address behind its own instruction.
    constexpr uint64_t kMaxInstruction = 15;
    if (top <= old_ip || top > old_ip + kMaxInstruction || now.rip == top) {
      return;
    }
    calls_.push_back({now.rsp, top});
  }

  std::vector<uint64_t> callers() const {
    std::vector<uint64_t> all;
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
      all.push_back(call->return_address);
    }
    all.insert(all.end(), outer_.begin(), outer_.end());
    return all;
  }

 private:
  struct Call {
    uint64_t slot;
    uint64_t return_address;
  };
  std::vector<Call> calls_;
  std::vector<uint64_t> outer_;
};

// Before libgcc's unwinder jumps to a handler it writes what the catcher's
// callee had saved over its own frame: the catcher is its caller by then, and
// who called the unwinder is gone.
bool IsCatching(const std::vector<uint64_t>& callers,
                const std::vector<uint64_t>& expected) {
  const auto own = std::mismatch(callers.rbegin(), callers.rend(),
                                 expected.rbegin(), expected.rend())
                       .first;
  return callers.rend() - own <= 1;
}

class StackStepTest : public ::testing::Test {
 protected:
  void Walk() {
    const auto& registers = child_.registers();
    copy_.resize(kMaxCopy);
    const uint64_t address = registers.rsp - kRedZone;
    copy_.resize(std::min<uint64_t>(kMaxCopy, stack_end_ - address));
    copy_.resize(child_.Read(address, copy_));
    const StackPart part = {{address}, copy_};
    const StackCopy stack = {
        {registers.rip}, ByDwarfNumber(registers), {&part, 1}};
    WalkStack(stack, 512, {.find = find_}, walked_);
  }

  std::vector<uint64_t> Callers() const {
    std::vector<uint64_t> callers;
    for (size_t i = 1; i < walked_.frames.size(); ++i) {
      callers.push_back(walked_.frames[i].value);
    }
    return callers;
  }

  bool IsInUnwinder() const {
    Dl_info info = {};
    return ::dladdr(reinterpret_cast<void*>(child_.registers().rip), &info) !=
               0 &&
           std::string_view(info.dli_fname).find("libgcc_s") !=
               std::string_view::npos;
  }

  std::string RowAtIp() const {
    const uint64_t ip = child_.registers().rip;
    const CodeAt code = find_({ip});
    if (code.kind != CodeAt::Kind::kTable) return "no table";
    return DescribeRow(FindUnwindRow(
        *code.table, ip - code.load_bias - code.table->base.value));
  }

  LoadedCode code_;
  std::function<CodeAt(Address)> find_ = [this](Address address) {
    return code_.Find(address);
  };
  // The part above main() is never needed.
  uint64_t stack_end_ =
      reinterpret_cast<uint64_t>(__builtin_frame_address(0)) + kMaxCopy;
  TracedChild child_;
  std::vector<std::byte> copy_;
  WalkedStack walked_;
};

// Wherever a thread is stopped, prologue, epilogue, linkage stub, resolver or
// thrown exception, its callers are those that called.
TEST_F(StackStepTest, CallersAreThoseThatCalled) {
  ASSERT_EQ(code_.failures(), 0);
  if (!child_.Wait()) GTEST_SKIP() << "a child cannot be traced here";
  const auto workload = reinterpret_cast<uint64_t>(&RunWorkload);
  while (child_.registers().rip != workload) ASSERT_TRUE(child_.Step());

  Walk();
  EXPECT_EQ(walked_.end, StackEnd::kOutermost);
  const uint64_t first_rsp = child_.registers().rsp;
  ShadowStack shadow(Callers());
  size_t steps = 0;
  size_t wrong = 0;
  size_t installing = 0;
  std::map<std::string, int> ended_early;
  while (child_.registers().rsp <= first_rsp) {
    const uint64_t ip = child_.registers().rip;
    const uint64_t rsp = child_.registers().rsp;
    ASSERT_TRUE(child_.Step());
    if (child_.registers().rsp > first_rsp) break;
    shadow.Follow(ip, rsp, child_);
    ++steps;
    Walk();
    const auto expected = shadow.callers();
    const auto callers = Callers();
    if (callers == expected) {
      EXPECT_EQ(walked_.end, StackEnd::kOutermost);
    } else if (IsInUnwinder() && IsCatching(callers, expected)) {
      ++installing;
    } else if (walked_.end != StackEnd::kOutermost &&
               callers.size() < expected.size() &&
               std::equal(callers.begin(), callers.end(), expected.begin())) {
      ++ended_early[RowAtIp()];
    } else if (++wrong <= 10) {
      ADD_FAILURE() << "at " << std::hex << child_.registers().rip << ": "
                    << RowAtIp() << ", end " << static_cast<int>(walked_.end)
                    << std::dec << ", " << callers.size() << " callers for "
                    << expected.size();
    }
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(steps, 1000u);
  EXPECT_GT(installing, 10u);
  EXPECT_LE(installing, 100u);
  // Where the epilogue of a realigned frame restores RBP is not known.
  EXPECT_LE(ended_early["r10+0, lost"], 10);
  ended_early.erase("r10+0, lost");
  for (const auto& [row, count] : ended_early) {
    ADD_FAILURE() << count << " stacks ended early at rows \"" << row << '"';
  }
  RecordProperty("steps", static_cast<int>(steps));
}

}  // namespace
}  // namespace ksym
