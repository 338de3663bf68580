// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/code_paths.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace ksym {
namespace {

constexpr int32_t kUnknown = FrameFacts::kUnknown;
constexpr int32_t kStackAlignment = 16;  // at calls

// `now` says less than `before` about what rows say.
bool SaysLess(const FrameFacts& now, const FrameFacts& before) {
  return now.rsp != before.rsp || now.rbp_saved != before.rbp_saved ||
         now.rbx_saved != before.rbx_saved;
}

bool SaveTheSame(const FrameFacts& a, const FrameFacts& b) {
  return a.rbp_saved == b.rbp_saved && a.rbx_saved == b.rbx_saved;
}

}  // namespace

CodePaths::CodePaths(ScannedCode& code,
                     std::function<CodeElsewhere(uint32_t)> elsewhere,
                     ScanBounds bounds)
    : code_(code), elsewhere_(std::move(elsewhere)), bounds_(bounds) {}

bool CodePaths::IsExhausted() const {
  return steps_ >= bounds_.steps || nodes_.size() >= bounds_.instructions ||
         strands_.reversals() >= kMaxReversals;
}

void CodePaths::FollowEntries(std::vector<uint32_t> entries) {
  new_entries_ = std::move(entries);
  max_steps_ = bounds_.steps;
  FollowCalls();
}

// Functions that are known by now, in rounds: what they call is known when
// they have proven right.
void CodePaths::FollowCalls() {
  while (!new_entries_.empty()) {
    std::vector<uint32_t> entries;
    for (const uint32_t at : new_entries_) {
      if (code_.FindGap(at) == nullptr || code_.IsEntry(at)) continue;
      code_.MarkEntry(at);
      entries.push_back(at);
    }
    new_entries_.clear();
    max_steps_ = bounds_.steps;
    for (const uint32_t at : entries) {
      FollowStrand(at, {}, {.origin = Origin::kEntry});
    }
    FollowReturns();
    Settle();
  }
}

bool CodePaths::Try(uint32_t at, const FrameFacts& facts) {
  const bool is_function = facts == FrameFacts{};
  if (is_function && code_.IsRefuted(at)) return false;
  max_steps_ = std::min(bounds_.steps, steps_ + kMaxGuessSteps);
  const size_t first = strands_.size();  // settled
  const bool is_taken = is_function && taken_.contains(at);
  FollowStrand(at, facts, {.origin = Origin::kGuess, .is_taken = is_taken});
  // Its own instructions refute it, and will do so again. What a bound ended is
  // not known to be wrong. A few of these would be right once more is known of
  // the code that they lead to; trying all again for them is not worth it.
  if (is_function && strands_.size() > first && strands_[first].is_wrong &&
      steps_ < max_steps_ && !IsExhausted()) {
    code_.MarkRefuted(at);
  }
  FollowReturns();
  Settle();
  const bool is_right = strands_.size() > first && strands_[first].is_proven;
  if (is_right && is_function) code_.MarkEntry(at);
  FollowCalls();
  return is_right;
}

bool CodePaths::TryJumpsBefore(uint32_t at) {
  constexpr size_t kMaxTried = 2;
  constexpr uint32_t kMaxDistance = 64 << 10;
  auto next =
      std::ranges::upper_bound(known_jumps_, at, {}, &PlaceWithFacts::at);
  std::vector<PlaceWithFacts> tried;
  while (next != known_jumps_.begin() && tried.size() < kMaxTried) {
    --next;
    if (at - next->at > kMaxDistance) break;
    const bool is_new =
        !next->facts.IsEntry() &&
        std::ranges::find(tried, next->facts, &PlaceWithFacts::facts) ==
            tried.end();
    if (is_new) tried.push_back(*next);
  }
  for (const PlaceWithFacts& jump : tried) {
    const auto strand = static_cast<uint32_t>(strands_.size());
    if (!Try(at, jump.facts)) continue;
    // If that returns, what jumps there does.
    strands_.LinkKnown({jump.strand, strand, LinkKind::kJump});
    return true;
  }
  return false;
}

void CodePaths::FollowStrand(uint32_t at, const FrameFacts& facts,
                             Strand strand) {
  if (IsExhausted()) return;
  const uint32_t mark = code_.MarkAt(at);
  if (mark >= ScannedCode::kFirstNumber &&
      nodes_[mark - ScannedCode::kFirstNumber].facts == facts) {
    return;  // the code before it leads here as well
  }
  steps_ += kStrandSteps;
  current_ = static_cast<uint32_t>(strands_.size());
  strand.first = static_cast<uint32_t>(nodes_.size());
  strands_.Add(strand);
  Enter(at, facts);
  Work();
  current().end = static_cast<uint32_t>(nodes_.size());
}

void CodePaths::Work() {
  while (!work_.empty()) {
    const uint32_t number = work_.back();
    work_.pop_back();
    if (current().is_wrong) continue;
    if (steps_ >= max_steps_ || IsExhausted()) {
      Refute();
      continue;
    }
    ++steps_;
    Step(number);
  }
}

void CodePaths::Step(uint32_t number) {
  const Node node = nodes_[number];
  const Instruction i = code_.Decode(node.at);
  const uint64_t next = uint64_t{node.at} + i.size;
  const uint64_t target = next + static_cast<uint64_t>(int64_t{i.target});
  const FrameFacts after = AfterInstruction(node.facts, i);
  switch (i.flow) {
    case CodeFlow::kNext:
      if (i.effect == FrameEffect::kTakeAddress) {
        addresses_.push_back(
            {static_cast<uint32_t>(next +
                                   static_cast<uint64_t>(int64_t{i.number})),
             current_});
      }
      // What falls into a function came from a call that does not return.
      if (current().origin != Origin::kEntry && IsEntry(next)) return;
      return GoTo(next, after);
    case CodeFlow::kJump:
      if (LeavesUnrestored(after)) return Refute();
      return GoTo(target, after);
    case CodeFlow::kBranch:
      GoTo(target, after);
      return GoTo(next, after);
    case CodeFlow::kCall:
    case CodeFlow::kCallSlot:
    case CodeFlow::kCallPointer:
      return StepCall(node, i);
    case CodeFlow::kSystemCall:
      returns_.push_back({{static_cast<uint32_t>(next), current_, after}});
      return;
    case CodeFlow::kJumpAnywhere:
      jumps_.push_back({node.at, current_, node.facts});
      return;
    case CodeFlow::kReturn:
      return StepReturn(node.facts);
    case CodeFlow::kReturnPop:
      return Refute();
    case CodeFlow::kStop:
      return;
  }
}

void CodePaths::StepCall(const Node& node, const Instruction& i) {
  const uint32_t next = node.at + i.size;
  uint32_t callee = kNone;
  if (i.flow == CodeFlow::kCall) {
    if (i.target == 0) {  // to know where it is: the word stays on the stack
      const Instruction push = {.effect = FrameEffect::kPush};
      return GoTo(next, AfterInstruction(node.facts, push));
    }
    const int64_t target = int64_t{next} + i.target;
    if (target < 0 || target >= kNone) return Refute();
    if (code_.FindGap(static_cast<uint64_t>(target)) == nullptr &&
        !elsewhere_(static_cast<uint32_t>(target)).is_code) {
      return Refute();
    }
    callee = static_cast<uint32_t>(target);
    calls_.push_back({callee, current_});
  }
  const int32_t rsp = node.facts.rsp;
  const bool is_aligned = rsp != kUnknown && rsp % kStackAlignment == 0;
  if (is_aligned && current().is_taken) current().is_proven = true;
  // What is guessed has to call as compilers do.
  const bool is_guess = current().origin == Origin::kGuess;
  if (is_guess && !is_aligned && rsp != kUnknown) return Refute();
  const FrameFacts after = AfterCall(node.facts);
  // Compilers know of no pointer that what it points to does not return.
  if (i.flow == CodeFlow::kCallPointer) return GoTo(next, after);
  returns_.push_back({{next, current_, after}, callee});
}

void CodePaths::StepReturn(const FrameFacts& facts) {
  if (facts.rsp != FrameFacts{}.rsp) return Refute();
  if (LeavesUnrestored(facts)) return Refute();
  if (facts.IsEntry()) current().is_proven = current().is_returning = true;
}

// A way out that finds RSP where it was, but not RBX and RBP. Assembly that
// only its own callers call may end so, but nothing proves then that it is
// that.
bool CodePaths::LeavesUnrestored(const FrameFacts& facts) {
  return current().origin != Origin::kEntry && facts.rsp == FrameFacts{}.rsp &&
         !facts.IsEntry();
}

void CodePaths::GoTo(uint64_t at, const FrameFacts& facts) {
  if (!facts.IsKnown()) {
    // A function may do what is not understood, but what is only taken for
    // code had better not.
    const bool is_known_there =
        code_.FindGap(at) != nullptr &&
        code_.MarkAt(static_cast<uint32_t>(at)) != ScannedCode::kUnseen;
    if (current().origin != Origin::kEntry || is_known_there) Refute();
    return;
  }
  if (code_.FindGap(at) == nullptr) return Leave(at, facts);
  Enter(static_cast<uint32_t>(at), facts);
}

// To code that is described.
void CodePaths::Leave(uint64_t at, const FrameFacts& facts) {
  if (at >= kNone) return Refute();
  const CodeElsewhere there = elsewhere_(static_cast<uint32_t>(at));
  if (!there.is_code) return Refute();
  if (there.rsp == kUnknown || facts.rsp == kUnknown) return;
  if (there.rsp != facts.rsp) return Refute();
  if (facts.IsEntry()) current().is_proven = true;
}

void CodePaths::Enter(uint32_t at, const FrameFacts& facts) {
  const bool is_begin = current().first == nodes_.size();
  if (!is_begin && code_.IsEntry(at)) {
    if (facts.rsp != FrameFacts{}.rsp) return Refute();
    if (facts.IsEntry()) current().is_proven = true;
  }
  const uint32_t mark = code_.MarkAt(at);
  if (mark == ScannedCode::kInside) return Refute();
  if (mark == ScannedCode::kUnseen) return AddNode(at, facts);
  Meet(nodes_[mark - ScannedCode::kFirstNumber], facts);
}

void CodePaths::AddNode(uint32_t at, const FrameFacts& facts) {
  const Instruction i = code_.Decode(at);
  // What is gone over again has been everywhere already, but for what was
  // forgotten.
  if (i.size == 0 || !code_.IsUnseen(at, i.size) || IsExhausted() ||
      is_repeating_) {
    return Refute();
  }
  const auto number = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({at, current_, i.size, facts});
  code_.Mark(at, i.size, number + ScannedCode::kFirstNumber);
  work_.push_back(number);
}

void CodePaths::Meet(Node& node, const FrameFacts& facts) {
  if (node.strand != current_) {
    strands_.Link({current_, node.strand, LinkKind::kJump});
  }
  const FrameFacts both = Common(node.facts, facts);
  const bool is_own = node.strand == current_;
  if (!both.IsKnown()) {
    // One is wrong: the newcomer, unless it is known to begin a function.
    if (!is_own && current().origin == Origin::kEntry) {
      strands_.MarkWrong(node.strand);
    }
    return Refute();
  }
  // What is not known to begin a function proves itself by all that it says.
  if (!is_own && current().origin != Origin::kEntry &&
      (SaysLess(both, node.facts) || !SaveTheSame(facts, node.facts))) {
    return Refute();
  }
  if (both == node.facts) return;
  node.facts = both;
  work_.push_back(static_cast<uint32_t>(&node - nodes_.data()));
}

// What comes from calls, in the order in which they were found.
void CodePaths::FollowReturns() {
  for (; returns_done_ < returns_.size(); ++returns_done_) {
    // By value: there will be more.
    CallReturn place = returns_[returns_done_];
    if (!strands_[place.strand].is_wrong) FollowReturn(place);
    returns_[returns_done_].started = place.started;
  }
}

void CodePaths::FollowReturn(CallReturn& place) {
  // Behind what does not return is another function, or none.
  if (!place.facts.IsKnown() || code_.FindGap(place.at) == nullptr ||
      code_.IsEntry(place.at)) {
    return;
  }
  const uint32_t mark = code_.MarkAt(place.at);
  if (mark == ScannedCode::kInside) return;
  if (mark == ScannedCode::kUnseen) {
    strands_.Link({place.strand, static_cast<uint32_t>(strands_.size()),
                   LinkKind::kFirstReturn, place.callee});
    place.started = static_cast<uint32_t>(strands_.size());
    FollowStrand(place.at, place.facts, {.origin = Origin::kCallReturn});
    return;
  }
  const uint32_t number = mark - ScannedCode::kFirstNumber;
  const FrameFacts both = Common(nodes_[number].facts, place.facts);
  if (!both.IsKnown()) return;
  if (SaveTheSame(place.facts, nodes_[number].facts))
    strands_.Link(
        {place.strand, nodes_[number].strand, LinkKind::kReturn, place.callee});
  if (both == nodes_[number].facts) return;
  nodes_[number].facts = both;
  current_ = nodes_[number].strand;
  work_.push_back(number);
  is_repeating_ = true;
  Work();
  is_repeating_ = false;
}

std::vector<ScannedRange> CodePaths::TakeRanges() {
  std::erase_if(nodes_, [](const Node& n) { return n.strand == kNone; });
  std::ranges::sort(nodes_, {}, &Node::at);
  std::vector<ScannedRange> ranges;
  for (const Node& node : nodes_) {
    const uint32_t end = node.at + node.size;
    if (!ranges.empty() && ranges.back().end == node.at &&
        ranges.back().facts == node.facts) {
      ranges.back().end = end;
    } else {
      ranges.push_back({node.at, end, node.facts});
    }
  }
  nodes_.clear();
  return ranges;
}

bool CodePaths::Returns(uint32_t callee) const {
  if (!IsEntry(callee)) return false;
  const uint32_t mark = code_.MarkAt(callee);
  if (mark < ScannedCode::kFirstNumber) return false;
  const Strand& strand =
      strands_[nodes_[mark - ScannedCode::kFirstNumber].strand];
  return strand.is_proven && strand.is_returning;
}

// Remembers what nothing was found against, for when the callee is known.
void CodePaths::KeepUnsure() {
  for (const CallReturn& place : returns_) {
    if (place.started == kNone || strands_[place.strand].is_wrong ||
        !strands_[place.strand].is_proven) {
      continue;
    }
    const Strand& started = strands_[place.started];
    if (!started.is_wrong && !started.is_proven) unsure_.push_back(place);
  }
}

void CodePaths::FollowSureReturns() {
  // As deep as functions call each other before one is found to return.
  constexpr int kMaxRounds = 32;
  for (int i = 0; i < kMaxRounds && !IsExhausted(); ++i) {
    const bool is_news = strands_.FindReturning(returns());
    if (!FollowSure() && !is_news) return;
  }
}

bool CodePaths::FollowSure() {
  const auto is_sure = [&](const CallReturn& place) {
    return Returns(place.callee);
  };
  const auto sure =
      std::partition(unsure_.begin(), unsure_.end(), std::not_fn(is_sure));
  std::copy_if(sure, unsure_.end(), std::back_inserter(returns_),
               [&](const CallReturn& place) {
                 return !strands_[place.strand].is_wrong;
               });
  unsure_.erase(sure, unsure_.end());
  if (returns_.empty()) return false;
  max_steps_ = bounds_.steps;
  FollowReturns();
  Settle();
  FollowCalls();
  return true;
}

// Forgets what is wrong, and what has not proven right.
void CodePaths::Settle() {
  strands_.Judge(returns());
  // While what is neither right nor wrong can be told from what is wrong.
  KeepUnsure();
  for (const uint32_t strand : strands_.TakeReversed()) {
    Forget(strands_[strand]);
  }
  const size_t settled = strands_.settled();
  for (size_t i = settled; i < strands_.size(); ++i) {
    strands_[i].is_wrong = !strands_[i].is_proven;
  }
  TakePlaces();
  // From the last on, as those of a guess are, and make room.
  for (size_t i = strands_.size(); i-- > settled;) {
    if (!strands_[i].is_wrong) continue;
    Forget(strands_[i]);
    if (i + 1 == strands_.size()) strands_.DropLast();
  }
  strands_.Settle();
  returns_.clear();
  returns_done_ = 0;
}

// What strands that are right name.
void CodePaths::TakePlaces() {
  const auto is_right = [&](const auto& place) {
    return !strands_[place.strand].is_wrong;
  };
  for (const Place& call : calls_) {
    if (is_right(call)) new_entries_.push_back(call.at);
  }
  for (const Place& address : addresses_) {
    const bool is_code = code_.FindGap(address.at) != nullptr;
    if (is_code && is_right(address)) taken_.insert(address.at);
  }
  const auto known = static_cast<std::ptrdiff_t>(known_jumps_.size());
  std::ranges::copy_if(jumps_, std::back_inserter(known_jumps_), is_right);
  const auto added = known_jumps_.begin() + known;
  const auto before = [](const PlaceWithFacts& a, const PlaceWithFacts& b) {
    return a.at < b.at;
  };
  std::sort(added, known_jumps_.end(), before);
  if (added != known_jumps_.end()) {
    std::inplace_merge(known_jumps_.begin(), added, known_jumps_.end(), before);
  }
  calls_.clear();
  addresses_.clear();
  jumps_.clear();
}

void CodePaths::Forget(Strand& strand) {
  strand.is_proven = false;
  for (uint32_t i = strand.first; i < strand.end; ++i) {
    if (nodes_[i].strand == kNone) continue;
    code_.Unmark(nodes_[i].at, nodes_[i].size);
    nodes_[i].strand = kNone;
  }
  if (strand.end == nodes_.size()) nodes_.resize(strand.first);
  strand.end = strand.first;
}

}  // namespace ksym
