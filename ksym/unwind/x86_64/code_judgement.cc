// SPDX-License-Identifier: Apache-2.0
// Which strands are right: what CodePaths forgets, and what it keeps.

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "ksym/unwind/x86_64/code_paths.h"

namespace ksym {

void CodePaths::MarkWrong(uint32_t strand) {
  if (strands_[strand].is_wrong) return;
  strands_[strand].is_wrong = true;
  if (strand < settled_) reversed_.push_back(strand);
}

// Calls `reach` with each strand that is reached, over `ways` from one to
// others, from those that `reached` has; it says whether to go on from there.
template <typename Reach>
void CodePaths::Spread(std::vector<Way>& ways, std::vector<uint32_t> reached,
                       const Reach& reach) {
  std::ranges::sort(ways, {}, &Way::from);
  while (!reached.empty()) {
    const uint32_t from = reached.back();
    reached.pop_back();
    const auto [first, last] =
        std::ranges::equal_range(ways, from, {}, &Way::from);
    for (auto way = first; way != last; ++way) {
      if (reach(way->to)) reached.push_back(way->to);
    }
  }
}

std::vector<uint32_t> CodePaths::NewStrands(bool Strand::* that) const {
  std::vector<uint32_t> found;
  for (size_t i = settled_; i < strands_.size(); ++i) {
    if (strands_[i].*that) found.push_back(static_cast<uint32_t>(i));
  }
  return found;
}

// What leads to something wrong without a call is wrong, and so is what follows
// the calls of something wrong.
void CodePaths::SpreadWrong() {
  std::vector<Way> ways;
  const auto add = [&](const Link& link) {
    if (link.kind == LinkKind::kJump) ways.push_back({link.to, link.from});
    if (link.kind == LinkKind::kFirstReturn) {
      ways.push_back({link.from, link.to});
    }
  };
  std::ranges::for_each(links_, add);
  if (!reversed_.empty()) std::ranges::for_each(known_links_, add);
  std::vector<uint32_t> wrong = NewStrands(&Strand::is_wrong);
  wrong.insert(wrong.end(), reversed_.begin(), reversed_.end());
  Spread(ways, std::move(wrong), [&](uint32_t strand) {
    const bool is_new = !strands_[strand].is_wrong;
    MarkWrong(strand);
    return is_new;
  });
}

// What leads to something right is right.
void CodePaths::SpreadProof() {
  std::vector<uint32_t> proven;
  for (size_t i = settled_; i < strands_.size(); ++i) {
    Strand& strand = strands_[i];
    strand.is_proven = !strand.is_wrong &&
                       (strand.is_proven || strand.origin == Origin::kEntry);
  }
  std::vector<Way> ways;
  for (const Link& link : links_) {
    if (!IsSure(link)) continue;
    ways.push_back({link.to, link.from});
    if (link.kind == LinkKind::kFirstReturn) {
      ways.push_back({link.from, link.to});
    }
    for (const uint32_t end : {link.from, link.to}) {
      if (end < settled_ && strands_[end].is_proven) proven.push_back(end);
    }
  }
  const auto found = NewStrands(&Strand::is_proven);
  proven.insert(proven.end(), found.begin(), found.end());
  Spread(ways, std::move(proven), [&](uint32_t number) {
    Strand& strand = strands_[number];
    if (strand.is_wrong || strand.is_proven) return false;
    return strand.is_proven = true;
  });
}

// A function returns if a way through it does.
void CodePaths::SpreadReturning() {
  std::vector<Way> ways;
  std::vector<uint32_t> returning = NewStrands(&Strand::is_returning);
  for (const Link& link : links_) {
    if (!IsSure(link)) continue;
    ways.push_back({link.to, link.from});
    if (link.to < settled_ && strands_[link.to].is_returning) {
      returning.push_back(link.to);
    }
  }
  Spread(ways, std::move(returning), [&](uint32_t number) {
    Strand& strand = strands_[number];
    if (strand.is_returning || !strand.is_proven) return false;
    return strand.is_returning = true;
  });
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
    const bool is_news = FindReturning();
    if (!FollowSure() && !is_news) return;
  }
}

// Whether more is known to return.
bool CodePaths::FindReturning() {
  std::erase_if(known_links_, [&](const Link& link) {
    return strands_[link.from].is_wrong || strands_[link.to].is_wrong;
  });
  std::vector<Way> ways;
  std::vector<uint32_t> returning;
  for (const Link& link : known_links_) {
    if (!IsSure(link)) continue;
    ways.push_back({link.to, link.from});
    if (strands_[link.to].is_returning) returning.push_back(link.to);
  }
  bool is_changed = false;
  Spread(ways, std::move(returning), [&](uint32_t strand) {
    if (strands_[strand].is_returning) return false;
    return is_changed = strands_[strand].is_returning = true;
  });
  return is_changed;
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
  max_steps_ = kMaxScanSteps;
  FollowReturns();
  Settle();
  FollowCalls();
  return true;
}

// Forgets what is wrong, and what has not proven right.
void CodePaths::Settle() {
  SpreadWrong();
  SpreadProof();
  SpreadReturning();
  KeepUnsure();
  for (const uint32_t strand : reversed_) Forget(strands_[strand]);
  if (!reversed_.empty()) ++reversals_;
  reversed_.clear();
  for (size_t i = settled_; i < strands_.size(); ++i) {
    strands_[i].is_wrong = !strands_[i].is_proven;
  }
  TakePlaces();
  // From the last on, as those of a guess are, and make room.
  for (size_t i = strands_.size(); i-- > settled_;) {
    if (!strands_[i].is_wrong) continue;
    Forget(strands_[i]);
    if (i + 1 == strands_.size()) strands_.pop_back();
  }
  std::ranges::copy_if(
      links_, std::back_inserter(known_links_), [&](const Link& link) {
        return link.from < strands_.size() && link.to < strands_.size() &&
               strands_[link.from].is_proven && strands_[link.to].is_proven;
      });
  links_.clear();
  returns_.clear();
  returns_done_ = 0;
  settled_ = strands_.size();
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
