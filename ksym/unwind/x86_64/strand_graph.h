// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ksym {

// The strands of code (CodePaths), how they lead to each other, and which of
// them are right. What is wrong or right spreads over the links: a jump to what
// is wrong is wrong, and what leads to something right is right. Knows nothing
// of instructions. Not thread-safe.
class StrandGraph {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

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
  // One strand leads to another one: by a jump or from one instruction to the
  // next, by the return of a call, or by the return that it begins with.
  enum class LinkKind : uint8_t { kJump, kReturn, kFirstReturn };
  struct StrandLink {
    uint32_t from = 0;
    uint32_t to = 0;
    LinkKind kind = LinkKind::kJump;
    uint32_t callee = kNone;  // of the others
  };
  // Whether the function there is known to return.
  using Returns = std::function<bool(uint32_t callee)>;

  size_t size() const { return strands_.size(); }
  Strand& operator[](size_t i) { return strands_[i]; }
  const Strand& operator[](size_t i) const { return strands_[i]; }
  // Strands from here on are not judged yet.
  size_t settled() const { return settled_; }
  // How often strands that had been judged turned out to be wrong.
  size_t reversals() const { return reversals_; }

  void Add(const Strand& strand) { strands_.push_back(strand); }
  void Link(const StrandLink& link) { links_.push_back(link); }
  // The same between two that have been judged.
  void LinkKnown(const StrandLink& link) { known_links_.push_back(link); }
  void MarkWrong(uint32_t strand);

  // Finds out what is wrong, right and returning of all new strands.
  void Judge(const Returns& returns);
  // Whether more of the judged ones is known to return, now that `returns`
  // knows more.
  bool FindReturning(const Returns& returns);

  // The judged strands that turned out to be wrong since the last call.
  std::vector<uint32_t> TakeReversed();
  void DropLast() { strands_.pop_back(); }
  // All that are there are judged. Keeps the links between right ones.
  void Settle();

 private:
  // A way that a judgement of strands spreads.
  struct Way {
    uint32_t from = 0;
    uint32_t to = 0;
  };
  static bool IsSure(const StrandLink& link, const Returns& returns) {
    return link.kind == LinkKind::kJump || returns(link.callee);
  }
  template <typename Reach>
  void Spread(std::vector<Way>& ways, std::vector<uint32_t> reached,
              const Reach& reach);
  std::vector<uint32_t> NewStrands(bool Strand::* that) const;
  void SpreadWrong();
  void SpreadProof(const Returns& returns);
  void SpreadReturning(const Returns& returns);

  std::vector<Strand> strands_;
  size_t settled_ = 0;
  std::vector<uint32_t> reversed_;
  size_t reversals_ = 0;
  std::vector<StrandLink> links_;  // of which an end is not judged yet
  std::vector<StrandLink> known_links_;
};

}  // namespace ksym
