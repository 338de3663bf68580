// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_timeline.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace ksym {
namespace {

bool IsSame(const KernelSymbol& a, const KernelSymbol& b) {
  return a.start == b.start && a.name == b.name && a.module == b.module;
}

bool Contains(const std::vector<KernelRange>& ranges, Address address) {
  return std::ranges::any_of(ranges, [&](const KernelRange& range) {
    return range.start <= address && address < range.end;
  });
}

}  // namespace

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
    // A table that was read later has it as well.
    SymbolNameBuffer buffer;
    const auto listed = snapshot_.Find(change.start, buffer);
    if (listed && listed->start == change.start) NoteRemoved(change.start);
    return;
  }
  NoteRemoved(change.start);
}

void KernelTimeline::NoteRemoved(Address start) {
  const auto known = std::ranges::find(removed_, start, &Removed::start);
  if (known == removed_.end()) removed_.push_back({.start = start});
}

void KernelTimeline::Replace(KernelSymbolSource snapshot) {
  previous_ = std::exchange(snapshot_, std::move(snapshot));
  // The new table has all that is there now; of what was added only that
  // which went again is not in it.
  std::erase_if(added_, [](const Added& added) { return !added.is_gone; });
  removed_.clear();
  doubtful_before_ = std::exchange(doubtful_, {});
}

void KernelTimeline::EndInterval() {
  std::erase_if(added_, [](const Added& added) { return added.is_gone; });
  for (Added& added : added_) added.is_new = false;
  for (Removed& removed : removed_) removed.in_this_interval = false;
  previous_.reset();
}

void KernelTimeline::EndEarlierInterval() {
  std::erase_if(added_, [](const Added& added) { return added.is_gone; });
  for (Added& added : added_) added.is_new = false;
  // What the table has there came after it went.
  std::erase_if(removed_, &Removed::in_this_interval);
}

// Whether the table before this one has another symbol at the address.
bool KernelTimeline::HeldAnother(Address address,
                                 const KernelSymbol& symbol) const {
  if (!previous_) return false;
  SymbolNameBuffer buffer;
  const auto before = previous_->Find(address, buffer);
  return before && !IsSame(*before, symbol) && !IsStillThere(*before);
}

// Where the last symbol of a module ends is not known, so it reaches up to what
// is behind it. If it is still there, that never was its own.
bool KernelTimeline::IsStillThere(const KernelSymbol& symbol) const {
  SymbolNameBuffer buffer;
  const auto now = snapshot_.Find(symbol.start, buffer);
  return now && IsSame(*now, symbol);
}

KernelTimeline::InSnapshots KernelTimeline::FindInSnapshots(
    Address address, SymbolNameBuffer& buffer) const {
  InSnapshots found = {.symbol = snapshot_.Find(address, buffer)};
  if (!found.symbol) {
    if (!previous_) return found;
    found.symbol = previous_->Find(address, buffer);
    if (found.symbol && IsStillThere(*found.symbol)) found.symbol.reset();
    found.leaves = found.symbol.has_value();
    found.is_ambiguous = found.symbol && IsModuleName(found.symbol->module) &&
                         Contains(doubtful_before_, address);
    return found;
  }
  // Only what is loaded can have had another's place.
  found.is_ambiguous =
      !found.symbol->module.empty() && HeldAnother(address, *found.symbol);
  const auto removed =
      std::ranges::find(removed_, found.symbol->start, &Removed::start);
  if (removed != removed_.end()) {
    found.leaves = true;
    if (!removed->in_this_interval) found.symbol.reset();
    return found;
  }
  found.is_ambiguous |=
      IsModuleName(found.symbol->module) && Contains(doubtful_, address);
  return found;
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
  const auto [symbol, leaves, is_ambiguous] = FindInSnapshots(address, buffer);
  if (is_ambiguous) return {Answer::Kind::kAmbiguous, {}};
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
