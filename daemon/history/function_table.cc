// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/function_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "daemon/base/bounded_sum.h"
#include "daemon/history/table_check.h"
#include "daemon/output/hot_spots.h"
#include "ksym/base/keyed_hash.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Status;

constexpr std::string_view kNamelessFunction = "[unknown]";

// Goes through a tree of nodes branch by branch.
class Branches {
 public:
  explicit Branches(const std::vector<Node>& nodes) : nodes_(nodes) {}

  // Calls `enter` with each node, and `leave` with it after all that is below
  // it. Not below a node for which `has` says no.
  template <typename Has, typename Enter, typename Leave>
  void ForEach(const Has& has, const Enter& enter, const Leave& leave) {
    const std::vector<uint32_t> order = Order();
    for (size_t i = 1; i < nodes_.size(); ++i) {
      const uint32_t node = order.empty() ? static_cast<uint32_t>(i) : order[i];
      if (!has(node)) continue;
      while (!path_.empty() && path_.back() != nodes_[node].parent) {
        leave(path_.back());
        path_.pop_back();
      }
      enter(node);
      path_.push_back(node);
    }
    for (; !path_.empty(); path_.pop_back()) leave(path_.back());
  }

 private:
  // Empty: they are in the order of branches, as those of a segment are.
  std::vector<uint32_t> Order() const {
    std::vector<uint32_t> path = {0};
    bool is_in_order = true;
    for (uint32_t i = 1; i < nodes_.size() && is_in_order; ++i) {
      while (!path.empty() && path.back() != nodes_[i].parent) path.pop_back();
      is_in_order = !path.empty();
      path.push_back(i);
    }
    return is_in_order ? std::vector<uint32_t>() : Sort();
  }

  // A node comes behind its caller, which its number is above.
  std::vector<uint32_t> Sort() const {
    std::vector<uint32_t> below(nodes_.size(), 1);  // with the node itself
    for (size_t i = nodes_.size(); --i > 0;) {
      below[nodes_[i].parent] += below[i];
    }
    std::vector<uint32_t> next(nodes_.size());  // place of the next callee
    std::vector<uint32_t> order(nodes_.size());
    next[0] = 1;
    for (uint32_t i = 1; i < nodes_.size(); ++i) {
      const uint32_t place = next[nodes_[i].parent];
      next[nodes_[i].parent] += below[i];
      next[i] = place + 1;
      order[place] = i;
    }
    return order;
  }

  const std::vector<Node>& nodes_;
  std::vector<uint32_t> path_;
};

}  // namespace

// The share of one file in the table.
class FunctionAdder::File {
 public:
  File(const Tables& tables, FunctionAdder& adder)
      : tables_(tables), adder_(adder), filter_(tables, adder.selection_) {}

  Status Add() {
    if (auto right = CheckTables(tables_); !right) return right;
    adder_.kind_.Enter(tables_, filter_);
    AddRows();
    if (auto added = AddLines(); !added) return added;
    for (uint32_t i = 0; i < tables_.parts.size(); ++i) {
      if (filter_.HasPart(i)) adder_.coverage_.Add(tables_, filter_.PartIn(i));
    }
    return {};
  }

 private:
  // Adds samples up by the node in which they end.
  void AddRows() {
    self_.resize(tables_.nodes.size());
    sums_.resize(tables_.nodes.size());
    for (const Row& row : tables_.rows) {
      const Series& series = tables_.series[row.series];
      if (!filter_.HasPart(row.part) || !filter_.HasRow(row) ||
          !adder_.kind_.Has(series)) {
        continue;
      }
      const uint64_t value = adder_.kind_.ValueOfRow(series, row);
      AddUpTo64Bits(adder_.table_.sum, value);
      // The kernel's stack is the inner one where there are both.
      AddUpTo64Bits(self_[row.kernel != 0 ? row.kernel : row.user], value);
      if (row.user != 0) AddUpTo64Bits(sums_[row.user], value);
      if (row.kernel != 0) AddUpTo64Bits(sums_[row.kernel], value);
    }
  }

  Status AddLines() {
    lines_.resize(tables_.functions.size());
    std::vector<bool> is_used(tables_.functions.size());
    // From the end: callers come before their callees, so a node's sum is
    // complete when its caller gets it.
    for (size_t i = tables_.nodes.size(); --i > 0;) {
      const Node& node = tables_.nodes[i];
      if (sums_[i] == 0) continue;
      AddUpTo64Bits(sums_[node.parent], sums_[i]);
      is_used[node.function] = true;
    }
    for (size_t i = 0; i < is_used.size(); ++i) {
      if (is_used[i]) {
        lines_[i] = adder_.LineOf(tables_, tables_.functions[i]);
      }
    }
    if (const size_t bytes =
            adder_.table_.strings.memory_bytes() +
            adder_.table_.lines.capacity() * sizeof(FunctionTable::Line);
        bytes > adder_.max_bytes_) {
      return Fail(ErrorCode::kLimit,
                  fmt::format("the functions would take more than {} MiB: ask "
                              "for a shorter time, or for one unit or command",
                              adder_.max_bytes_ >> 20));
    }
    AddSelf();
    AddTotals();
    return {};
  }

  void AddSelf() {
    if (self_[0] != 0) {
      StringTable& strings = adder_.table_.strings;
      const uint32_t line = adder_.LineOf(
          {.name = strings.Intern(kNoStackName), .kind = &kUserFrame});
      AddUpTo64Bits(adder_.table_.lines[line].self, self_[0]);
      AddUpTo64Bits(adder_.table_.lines[line].total, self_[0]);
    }
    for (size_t i = 1; i < self_.size(); ++i) {
      if (self_[i] == 0) continue;
      const uint32_t line = lines_[tables_.nodes[i].function];
      AddUpTo64Bits(adder_.table_.lines[line].self, self_[i]);
    }
  }

  // A function counts where it is outermost, and so once for each side of a
  // stack.
  void AddTotals() {
    std::vector<uint32_t> times_above(adder_.table_.lines.size());
    Branches(tables_.nodes)
        .ForEach([&](uint32_t node) { return sums_[node] != 0; },
                 [&](uint32_t node) {
                   const uint32_t line = lines_[tables_.nodes[node].function];
                   if (times_above[line]++ != 0) return;
                   AddUpTo64Bits(adder_.table_.lines[line].total, sums_[node]);
                 },
                 [&](uint32_t node) {
                   --times_above[lines_[tables_.nodes[node].function]];
                 });
  }

  const Tables& tables_;
  FunctionAdder& adder_;
  const FileFilter filter_;
  std::vector<uint64_t> self_;   // by node
  std::vector<uint64_t> sums_;   // by node, of either side, with all below it
  std::vector<uint32_t> lines_;  // by function, of those that are used
};

Status FunctionAdder::Add(const Tables& tables) {
  return File(tables, *this).Add();
}

uint32_t FunctionAdder::LineOf(const Tables& tables, const Function& function) {
  std::string_view name = tables.strings.Get(function.name);
  if (name.empty()) name = kNamelessFunction;
  return LineOf(
      {.name = table_.strings.Intern(name),
       .object = table_.strings.Intern(tables.strings.Get(function.object)),
       .kind = KindOfFunction(tables, function)});
}

uint32_t FunctionAdder::LineOf(FunctionTable::Line line) {
  const uint64_t hash = ksym::HashWords(ksym::WordOf(line.name, line.object),
                                        reinterpret_cast<uintptr_t>(line.kind));
  const auto [id, is_new] = line_ids_.FindOrInsert(
      hash, static_cast<uint32_t>(table_.lines.size()), [&](uint32_t other) {
        const FunctionTable::Line& found = table_.lines[other];
        return found.name == line.name && found.object == line.object &&
               found.kind == line.kind;
      });
  if (is_new) table_.lines.push_back(line);
  return id;
}

FunctionTable FunctionAdder::Finish() && {
  std::ranges::sort(table_.lines, [this](const auto& a, const auto& b) {
    return std::tuple(b.self, b.total, table_.strings.Get(a.name),
                      table_.strings.Get(a.object), a.kind->name) <
           std::tuple(a.self, a.total, table_.strings.Get(b.name),
                      table_.strings.Get(b.object), b.kind->name);
  });
  table_.kind = kind_.name();
  table_.unit = kind_.unit();
  table_.coverage = coverage_.coverage();
  return std::move(table_);
}

}  // namespace profd::history
