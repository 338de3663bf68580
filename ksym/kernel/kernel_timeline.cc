#include "ksym/kernel/kernel_timeline.h"

#include <algorithm>
#include <utility>

namespace ksym {

void KernelTimeline::Apply(const KernelSymbolChange& change) {
  if (change.kind == KernelSymbolChange::Kind::kAdded) {
    added_.push_back({.start = change.start,
                      .end = change.start + change.size,
                      .name = change.name,
                      .module = change.module});
    return;
  }
  for (Added& added : added_) {
    if (added.start != change.start || added.is_gone) continue;
    added.is_gone = true;
    return;
  }
  const auto known = std::ranges::find(removed_, change.start, &Removed::start);
  if (known == removed_.end()) removed_.push_back({.start = change.start});
}

void KernelTimeline::Replace(KernelSymbolSource snapshot) {
  previous_ = std::exchange(snapshot_, std::move(snapshot));
  // The new table has all that is there now; of what was added only that
  // which went again is not in it.
  std::erase_if(added_, [](const Added& added) { return !added.is_gone; });
  removed_.clear();
}

void KernelTimeline::EndInterval() {
  std::erase_if(added_, [](const Added& added) { return added.is_gone; });
  for (Added& added : added_) added.is_new = false;
  for (Removed& removed : removed_) removed.in_this_interval = false;
  previous_.reset();
}

std::optional<KernelSymbol> KernelTimeline::FindInSnapshots(
    Address address, SymbolNameBuffer& buffer, bool& leaves) const {
  auto symbol = snapshot_.Find(address, buffer);
  if (!symbol && previous_) {
    symbol = previous_->Find(address, buffer);
    leaves = symbol.has_value();
    return symbol;
  }
  if (!symbol) return symbol;
  const auto removed =
      std::ranges::find(removed_, symbol->start, &Removed::start);
  if (removed == removed_.end()) return symbol;
  leaves = true;
  return removed->in_this_interval ? symbol : std::nullopt;
}

KernelTimeline::Answer KernelTimeline::Find(Address address,
                                            SymbolNameBuffer& buffer) const {
  Answer answer;
  const Added* found = nullptr;
  for (const Added& added : added_) {
    if (address < added.start || address >= added.end) continue;
    if (found != nullptr && found->name != added.name) {
      answer.kind = Answer::Kind::kAmbiguous;
      return answer;
    }
    found = &added;
  }
  bool leaves = false;
  const auto symbol = FindInSnapshots(address, buffer, leaves);
  if (found == nullptr) {
    if (!symbol) return answer;
    return {Answer::Kind::kFound, *symbol};
  }
  // What an older symbol had before it left in this very interval.
  if (symbol && leaves && found->is_new && symbol->name != found->name) {
    answer.kind = Answer::Kind::kAmbiguous;
    return answer;
  }
  answer.kind = Answer::Kind::kFound;
  answer.symbol = {.name = found->name,
                   .module = found->module,
                   .start = found->start,
                   .size = found->end - found->start,
                   .offset = address - found->start,
                   .type = 't'};
  return answer;
}

}  // namespace ksym
