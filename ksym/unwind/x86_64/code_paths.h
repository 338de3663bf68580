// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "ksym/base/keyed_hash.h"
#include "ksym/unwind/x86_64/code_scan.h"
#include "ksym/unwind/x86_64/frame_facts.h"
#include "ksym/unwind/x86_64/scanned_code.h"
#include "ksym/unwind/x86_64/strand_graph.h"

namespace ksym {

// The ways through code, and what is known of frames on them. Code is followed
// in strands: what can be reached from one place without the return of a call.
// A strand that turns out to be wrong is forgotten as a whole.
class CodePaths {
 public:
  // Borrows `code`.
  CodePaths(ScannedCode& code, std::function<CodeElsewhere(uint32_t)> elsewhere,
            ScanBounds bounds);

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
  using Strand = StrandGraph::Strand;
  using Origin = StrandGraph::Origin;
  using LinkKind = StrandGraph::LinkKind;
  static constexpr uint32_t kNone = StrandGraph::kNone;

  struct Node {
    uint32_t at = 0;
    uint32_t strand = kNone;
    uint8_t size = 0;
    FrameFacts facts;
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
  StrandGraph::Returns returns() const {
    return [this](uint32_t callee) { return Returns(callee); };
  }
  bool FollowSure();
  Strand& current() { return strands_[current_]; }
  void Refute() { strands_.MarkWrong(current_); }

  bool IsEntry(uint64_t at) const {
    return code_.FindGap(at) != nullptr &&
           code_.IsEntry(static_cast<uint32_t>(at));
  }

  // Keeping
  void KeepUnsure();
  void Settle();
  void TakePlaces();
  void Forget(Strand& strand);
  void FollowCalls();

  ScannedCode& code_;
  std::function<CodeElsewhere(uint32_t)> elsewhere_;
  ScanBounds bounds_;
  std::vector<Node> nodes_;
  StrandGraph strands_;
  uint32_t current_ = 0;
  std::vector<uint32_t> work_;  // numbers of nodes
  size_t steps_ = 0;
  // A strand that has an end is gone over again.
  bool is_repeating_ = false;
  size_t max_steps_ = 0;  // up to which a guess may go

  std::vector<CallReturn> returns_;
  size_t returns_done_ = 0;
  std::vector<Place> calls_;
  std::vector<Place> addresses_;  // that code takes
  std::vector<PlaceWithFacts> jumps_;

  // Entries that judged strands name.
  std::vector<uint32_t> new_entries_;
  std::unordered_set<uint32_t, NumberHash> taken_;
  std::vector<CallReturn> unsure_;           // that were given up
  std::vector<PlaceWithFacts> known_jumps_;  // by place
};

}  // namespace ksym
