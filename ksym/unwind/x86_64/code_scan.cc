// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/code_scan.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "ksym/unwind/x86_64/code_paths.h"

namespace ksym {
namespace {

// Undecodable places in succession that make what follows data, up to the next
// code that is known.
constexpr int kMaxUndecodable = 3;
constexpr int kSweeps = 3;
// Functions begin there, unless small code is wanted.
constexpr uint32_t kAlignment = 16;

// Looks in the rest of gaps for code that no direct jump leads to.
class GuessWork {
 public:
  GuessWork(ScannedCode& code, CodePaths& paths) : code_(code), paths_(paths) {}

  void Sweep(const CodeGap& gap) {
    at_ = gap.start;
    may_begin_ = true;
    undecodable_ = 0;
    while (at_ < gap.end && !paths_.IsExhausted()) Advance(gap);
  }

  // Places that turned out to be code.
  size_t found() const { return found_; }

 private:
  void Advance(const CodeGap& gap) {
    if (code_.MarkAt(at_) == ScannedCode::kInside) {
      ++at_;
      return;
    }
    const Instruction i = code_.Decode(at_);
    if (code_.MarkAt(at_) != ScannedCode::kUnseen) {
      may_begin_ = EndsPath(i.flow);
      undecodable_ = 0;
      at_ += std::max<uint32_t>(i.size, 1);
    } else if (i.size == 0) {
      SkipData(gap);
    } else if (may_begin_ && i.is_padding) {
      at_ += i.size;
    } else if (!may_begin_ || !Guess()) {
      may_begin_ = EndsPath(i.flow);
      at_ += i.size;
    }
  }

  static bool EndsPath(CodeFlow flow) {
    return flow != CodeFlow::kNext && flow != CodeFlow::kBranch;
  }

  void SkipData(const CodeGap& gap) {
    may_begin_ = true;
    if (++undecodable_ >= kMaxUndecodable) {
      at_ = code_.FindMarked(at_, gap.end);
    } else {
      at_ = (at_ / kAlignment + 1) * kAlignment;
    }
  }

  // Whether there is code now.
  bool Guess() {
    const bool is_code = paths_.Try(at_, {}) || paths_.TryJumpsBefore(at_);
    if (is_code) ++found_;
    return is_code;
  }

  ScannedCode& code_;
  CodePaths& paths_;
  uint32_t at_ = 0;
  size_t found_ = 0;
  bool may_begin_ = true;
  int undecodable_ = 0;
};

}  // namespace

std::vector<ScannedRange> ScanCode(CodeToScan input) {
  ScannedCode code(std::move(input.gaps), std::move(input.read));
  CodePaths paths(code, std::move(input.elsewhere), input.bounds);
  paths.FollowEntries(std::move(input.entries));
  paths.FollowSureReturns();
  // Again, as what a function calls may be found after it.
  for (int i = 0; i < kSweeps; ++i) {
    GuessWork guess(code, paths);
    for (const CodeGap& gap : code.gaps()) guess.Sweep(gap);
    if (guess.found() == 0) break;
    paths.FollowSureReturns();
  }
  return paths.TakeRanges();
}

}  // namespace ksym
