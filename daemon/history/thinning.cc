// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/thinning.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "daemon/history/rare_callees.h"
#include "daemon/history/replacement.h"
#include "daemon/history/table_order.h"
#include "daemon/history/words.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;

// What one sample of a kind stands for on average. Kinds of one name and unit
// are one: each setting of a file has its own.
class MeanValues {
 public:
  explicit MeanValues(const Tables& tables) {
    std::map<std::pair<uint32_t, uint32_t>, Sum> sums;
    std::vector<Sum*> of_kinds;
    of_kinds.reserve(tables.kinds.size());
    for (const Kind& kind : tables.kinds) {
      of_kinds.push_back(&sums[{kind.name, kind.unit}]);
    }
    // All together stays below 2^64.
    for (const Row& row : tables.rows) {
      Sum& sum = *of_kinds[tables.series[row.series].kind];
      sum.count += row.count;
      sum.value += row.value;
    }
    means_.reserve(of_kinds.size());
    for (const Sum* sum : of_kinds) {
      means_.push_back(sum->count == 0 ? 0 : sum->value / sum->count);
    }
  }

  uint64_t Of(uint32_t kind) const { return means_[kind]; }

 private:
  struct Sum {
    uint64_t count = 0;
    uint64_t value = 0;
  };
  std::vector<uint64_t> means_;  // by kind
};

// Finds the rare stacks of tables and leads their rows to marks.
class RareStacks {
 public:
  explicit RareStacks(Tables& tables)
      : tables_(tables),
        weights_(tables.nodes.size()),
        kept_(tables.nodes.size()) {
    Weigh();
    Choose();
  }

  // How many were folded.
  uint32_t Fold() {
    for (Marks& marks : marks_) marks.nodes.resize(kept_.size());
    for (Row& row : tables_.rows) {
      row.user = PlaceOf(row.user, /*is_kernel=*/false);
      row.kernel = PlaceOf(row.kernel, /*is_kernel=*/true);
    }
    return folded_;
  }

 private:
  // Nobody's, one sample's, or more than that.
  enum class Weight : uint8_t { kNone, kOnce, kMore };

  struct Marks {
    uint32_t function = 0;
    bool has_function = false;
    std::vector<uint32_t> nodes;  // by the caller's; 0: there is none
  };

  void Weigh() {
    const MeanValues means(tables_);
    for (const Row& row : tables_.rows) {
      const uint32_t kind = tables_.series[row.series].kind;
      const bool is_large =
          tables_.kinds[kind].has_values != 0 && row.value > means.Of(kind);
      const Weight weight =
          row.count > 1 || is_large ? Weight::kMore : Weight::kOnce;
      Add(weight, weights_[row.user]);
      Add(weight, weights_[row.kernel]);
    }
    for (size_t node = tables_.nodes.size(); --node > 0;) {
      Add(weights_[node], weights_[tables_.nodes[node].parent]);
    }
  }

  static void Add(Weight more, Weight& sum) {
    if (more == Weight::kNone) return;
    sum = sum == Weight::kNone ? more : Weight::kMore;
  }

  // Callers come before what they call, and are never rarer.
  void Choose() {
    for (uint32_t node = 1; node < kept_.size(); ++node) {
      const uint32_t parent = tables_.nodes[node].parent;
      const bool is_rare = parent != 0 && weights_[node] == Weight::kOnce;
      if (is_rare) ++folded_;
      kept_[node] = is_rare ? kept_[parent] : node;
    }
  }

  uint32_t PlaceOf(uint32_t node, bool is_kernel) {
    const uint32_t kept = kept_[node];
    return kept == node ? node : MarkOf(kept, is_kernel);
  }

  uint32_t MarkOf(uint32_t caller, bool is_kernel) {
    Marks& marks = marks_[is_kernel ? 1 : 0];
    uint32_t& mark = marks.nodes[caller];
    if (mark == 0) {
      mark = static_cast<uint32_t>(tables_.nodes.size());
      tables_.nodes.push_back(
          {.parent = caller, .function = FunctionOf(marks, is_kernel)});
    }
    return mark;
  }

  uint32_t FunctionOf(Marks& marks, bool is_kernel) {
    if (!std::exchange(marks.has_function, true)) {
      const FrameKind& kind = RareKind(is_kernel);
      marks.function = static_cast<uint32_t>(tables_.functions.size());
      tables_.functions.push_back(
          {.name = tables_.strings.Intern(kRareCallees),
           .kind = tables_.strings.Intern(kind.name),
           .reason = tables_.strings.Intern(ksym::UnresolvedName(kRareReason)),
           .flags = FlagsOf(kind)});
    }
    return marks.function;
  }

  Tables& tables_;
  std::vector<Weight> weights_;  // by node: of all stacks that begin with it
  std::vector<uint32_t> kept_;   // by node: it, or its last caller that stays
  std::array<Marks, 2> marks_;   // of the user's side and of the kernel's
  uint32_t folded_ = 0;
};

// Removes the elements that are not used; where the others went.
template <typename Element>
std::vector<uint32_t> KeepUsed(std::vector<Element>& table,
                               const std::vector<bool>& is_used) {
  std::vector<uint32_t> places(table.size());
  uint32_t next = 0;
  for (size_t place = 0; place < table.size(); ++place) {
    if (!is_used[place]) continue;
    places[place] = next;
    table[next++] = table[place];
  }
  table.resize(next);
  return places;
}

// Removes the stacks that no row has, and their functions.
void DropUnused(Tables& tables) {
  std::vector<bool> nodes(tables.nodes.size());
  std::vector<bool> functions(tables.functions.size());
  nodes[0] = true;
  for (const Row& row : tables.rows) {
    nodes[row.user] = true;
    nodes[row.kernel] = true;
  }
  for (size_t node = nodes.size(); --node > 0;) {
    if (!nodes[node]) continue;
    nodes[tables.nodes[node].parent] = true;
    functions[tables.nodes[node].function] = true;
  }
  const auto node_places = KeepUsed(tables.nodes, nodes);
  const auto function_places = KeepUsed(tables.functions, functions);
  for (size_t node = 1; node < tables.nodes.size(); ++node) {
    Node& kept = tables.nodes[node];
    kept = {.parent = node_places[kept.parent],
            .function = function_places[kept.function]};
  }
  for (Row& row : tables.rows) {
    row.user = node_places[row.user];
    row.kernel = node_places[row.kernel];
  }
}

}  // namespace

void ThinTables(Tables& tables) {
  if (!tables.thinnings.empty()) return;
  // An hour that had one file alone has them still.
  for (Row& row : tables.rows) row.slice = 0;
  UniteRows(tables.rows);
  const uint32_t stacks = RareStacks(tables).Fold();
  DropUnused(tables);
  OrderTables(tables);
  UniteRows(tables.rows);
  tables.thinnings.push_back({.stacks = stacks});
}

Result<ThinnedFile> ThinFile(const std::string& directory, const FileName& name,
                             const std::function<bool()>& is_over) {
  if (is_over()) return GaveWay();
  auto tables = ReadWhole(directory, name);
  if (!tables) return Fail(std::move(tables.error()));
  const TableSums before(*tables);
  if (is_over()) return GaveWay();
  ThinTables(*tables);
  if (TableSums(*tables) != before) {
    return Fail(ErrorCode::kCorrupt, "its sums would not be what they were");
  }
  const uint32_t stacks = tables->thinnings.front().stacks;
  if (is_over()) return GaveWay();
  auto bytes = EncodeReplacement(name, std::move(*tables));
  if (!bytes) return Fail(std::move(bytes.error()));
  return ThinnedFile{.bytes = std::move(*bytes), .stacks = stacks};
}

}  // namespace profd::history
