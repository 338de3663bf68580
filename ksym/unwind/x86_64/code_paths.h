// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "ksym/unwind/x86_64/code_scan.h"
#include "ksym/unwind/x86_64/frame_facts.h"
#include "ksym/unwind/x86_64/scanned_code.h"

namespace ksym {

// The ways through code, and what is known of frames on them. Code is followed
// in strands: what can be reached from one place without the return of a call.
// A strand that turns out to be wrong is forgotten as a whole.
class CodePaths {
 public:
  // Borrows `code`.
  CodePaths(ScannedCode& code,
            std::function<CodeElsewhere(uint32_t)> elsewhere);

  // Follows functions, and those that they call.
  void FollowEntries(std::vector<uint32_t> entries);

  // Follows calls of what is known to return by now, and was not so far.
  void FollowSureReturns();

  // Follows what may be code with these facts, and those that it calls. True,
  // and then it stays, if it proves right.
  bool Try(uint32_t at, const FrameFacts& facts);

  // The same with the facts at one of the nearest indirect jumps before it.
  bool TryJumpsBefore(uint32_t at);

  // A bound was met: nothing more will be followed.
  bool IsExhausted() const;

  // What is known; leaves nothing.
  std::vector<ScannedRange> TakeRanges();

 private:
  // Why a strand begins where it does.
  enum class Origin : uint8_t { kEntry, kCallReturn, kGuess };

  struct Strand {
    uint32_t first = 0;  // of its instructions
    uint32_t end = 0;
    Origin origin = Origin::kEntry;
    // Code takes its address, and it begins where functions do.
    bool is_taken = false;

    bool is_wrong = false;
    bool is_proven = false;
    // It is proven by a return.
    bool is_returning = false;
  };
  struct Node {
    uint32_t at = 0;
    uint32_t strand = kNone;
    uint8_t size = 0;
    FrameFacts facts;
  };
  // One strand leads to another one: by a jump or from one instruction to the
  // next, by the return of a call, or by the return that it begins with.
  enum class LinkKind : uint8_t { kJump, kReturn, kFirstReturn };
  struct Link {
    uint32_t from = 0;
    uint32_t to = 0;
    LinkKind kind = LinkKind::kJump;
    uint32_t callee = kNone;  // of the others
  };
  // A way that a judgement of strands spreads.
  struct Way {
    uint32_t from = 0;
    uint32_t to = 0;
  };
  // A place with the strand that names it.
  struct Place {
    uint32_t at = 0;
    uint32_t strand = 0;
  };
  struct PlaceWithFacts {
    uint32_t at = 0;
    uint32_t strand = 0;
    FrameFacts facts;
  };
  // Where a call would return to.
  struct CallReturn : PlaceWithFacts {
    uint32_t callee = kNone;
    uint32_t started = kNone;  // the strand that begins there
  };

  static constexpr uint32_t kNone = 0xffffffff;

  // Following
  void FollowStrand(uint32_t at, const FrameFacts& facts, Strand strand);
  void Work();
  void Step(uint32_t number);
  void StepCall(const Node& node, const Instruction& i);
  void StepReturn(const FrameFacts& facts);
  bool LeavesUnrestored(const FrameFacts& facts);
  void GoTo(uint64_t at, const FrameFacts& facts);
  void Leave(uint64_t at, const FrameFacts& facts);
  void Enter(uint32_t at, const FrameFacts& facts);
  void AddNode(uint32_t at, const FrameFacts& facts);
  void Meet(Node& node, const FrameFacts& facts);
  void FollowReturns();
  void FollowReturn(CallReturn& place);
  bool Returns(uint32_t callee) const;
  bool IsSure(const Link& link) const {
    return link.kind == LinkKind::kJump || Returns(link.callee);
  }
  bool FollowSure();
  bool FindReturning();
  Strand& current() { return strands_[current_]; }
  void Refute() { MarkWrong(current_); }

  bool IsEntry(uint64_t at) const {
    return code_.FindGap(at) != nullptr &&
           code_.IsEntry(static_cast<uint32_t>(at));
  }

  // Judging
  void MarkWrong(uint32_t strand);
  template <typename Reach>
  void Spread(std::vector<Way>& ways, std::vector<uint32_t> reached,
              const Reach& reach);
  std::vector<uint32_t> NewStrands(bool Strand::* that) const;
  void SpreadWrong();
  void SpreadProof();
  void SpreadReturning();
  void KeepUnsure();
  void Settle();
  void TakePlaces();
  void Forget(Strand& strand);
  void FollowCalls();

  ScannedCode& code_;
  std::function<CodeElsewhere(uint32_t)> elsewhere_;
  std::vector<Node> nodes_;
  std::vector<Strand> strands_;
  uint32_t current_ = 0;
  std::vector<uint32_t> work_;  // numbers of nodes
  size_t steps_ = 0;
  // A strand that has an end is gone over again.
  bool is_repeating_ = false;
  size_t max_steps_ = 0;  // up to which a guess may go

  // Strands from here on are not judged yet.
  size_t settled_ = 0;
  std::vector<uint32_t> reversed_;  // older ones that are wrong
  size_t reversals_ = 0;
  std::vector<Link> links_;
  std::vector<CallReturn> returns_;
  size_t returns_done_ = 0;
  std::vector<Place> calls_;
  std::vector<Place> addresses_;  // that code takes
  std::vector<PlaceWithFacts> jumps_;

  // Entries that judged strands name.
  std::vector<uint32_t> new_entries_;
  std::unordered_set<uint32_t> taken_;
  std::vector<CallReturn> unsure_;  // that were given up
  std::vector<Link> known_links_;
  std::vector<PlaceWithFacts> known_jumps_;  // by place
};

}  // namespace ksym
