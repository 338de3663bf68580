// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/strand_graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ksym {

void StrandGraph::MarkWrong(uint32_t strand) {
  if (strands_[strand].is_wrong) return;
  strands_[strand].is_wrong = true;
  if (strand < settled_) reversed_.push_back(strand);
}

// Calls `reach` with each strand that is reached, over `ways` from one to
// others, from those that `reached` has; it says whether to go on from there.
template <typename Reach>
void StrandGraph::Spread(std::vector<Way>& ways, std::vector<uint32_t> reached,
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

std::vector<uint32_t> StrandGraph::NewStrands(bool Strand::* that) const {
  std::vector<uint32_t> found;
  for (size_t i = settled_; i < strands_.size(); ++i) {
    if (strands_[i].*that) found.push_back(static_cast<uint32_t>(i));
  }
  return found;
}

// What leads to something wrong without a call is wrong, and so is what follows
// the calls of something wrong.
void StrandGraph::SpreadWrong() {
  std::vector<Way> ways;
  const auto add = [&](const StrandLink& link) {
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
void StrandGraph::SpreadProof(const Returns& returns) {
  std::vector<uint32_t> proven;
  for (size_t i = settled_; i < strands_.size(); ++i) {
    Strand& strand = strands_[i];
    strand.is_proven = !strand.is_wrong &&
                       (strand.is_proven || strand.origin == Origin::kEntry);
  }
  std::vector<Way> ways;
  for (const StrandLink& link : links_) {
    if (!IsSure(link, returns)) continue;
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
void StrandGraph::SpreadReturning(const Returns& returns) {
  std::vector<Way> ways;
  std::vector<uint32_t> returning = NewStrands(&Strand::is_returning);
  for (const StrandLink& link : links_) {
    if (!IsSure(link, returns)) continue;
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

bool StrandGraph::FindReturning(const Returns& returns) {
  std::erase_if(known_links_, [&](const StrandLink& link) {
    return strands_[link.from].is_wrong || strands_[link.to].is_wrong;
  });
  std::vector<Way> ways;
  std::vector<uint32_t> returning;
  for (const StrandLink& link : known_links_) {
    if (!IsSure(link, returns)) continue;
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

void StrandGraph::Judge(const Returns& returns) {
  // In this order: nothing wrong may prove something, and only what is proven
  // returns.
  SpreadWrong();
  SpreadProof(returns);
  SpreadReturning(returns);
}

std::vector<uint32_t> StrandGraph::TakeReversed() {
  if (!reversed_.empty()) ++reversals_;
  return std::exchange(reversed_, {});
}

void StrandGraph::Settle() {
  std::ranges::copy_if(
      links_, std::back_inserter(known_links_), [&](const StrandLink& link) {
        return link.from < strands_.size() && link.to < strands_.size() &&
               strands_[link.from].is_proven && strands_[link.to].is_proven;
      });
  links_.clear();
  settled_ = strands_.size();
}

}  // namespace ksym
