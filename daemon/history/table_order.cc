// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/table_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace profd::history {
namespace {

// Sorts a table by what `key` gives of an element, and returns where each
// element went.
template <typename Element, typename Key>
std::vector<uint32_t> SortTable(std::vector<Element>& table, const Key& key) {
  std::vector<uint32_t> order(table.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {},
                           [&](uint32_t place) { return key(table[place]); });
  std::vector<uint32_t> places(table.size());
  std::vector<Element> sorted;
  sorted.reserve(table.size());
  for (const uint32_t place : order) {
    places[place] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(table[place]);
  }
  table = std::move(sorted);
  return places;
}

// Names of one file are alike, and follow each other as well in stacks.
void OrderFunctions(Tables& tables) {
  const StringTable& strings = tables.strings;
  const auto places =
      SortTable(tables.functions, [&](const Function& function) {
        return std::tuple(strings.Get(function.object),
                          strings.Get(function.kind),
                          strings.Get(function.name));
      });
  for (Node& node : tables.nodes | std::views::drop(1)) {
    node.function = places[node.function];
  }
}

void OrderSeries(Tables& tables) {
  const StringTable& strings = tables.strings;
  const auto places = SortTable(tables.series, [&](const Series& series) {
    return std::tuple(strings.Get(series.cgroup), strings.Get(series.comm),
                      series.pid, series.tid, series.kind, series.user_state,
                      series.kernel_state, series.parked);
  });
  for (Row& row : tables.rows) row.series = places[row.series];
}

// Each cgroup's last names, which count. They may be of cgroups that no series
// has.
void OrderCgroupNames(Tables& tables) {
  const StringTable& strings = tables.strings;
  std::vector<CgroupName>& names = tables.cgroup_names;
  // The last names of a cgroup become its first, which are those that unique()
  // keeps.
  std::ranges::reverse(names);
  std::ranges::stable_sort(names, {}, [&](const CgroupName& name) {
    return strings.Get(name.cgroup);
  });
  const auto others = std::ranges::unique(names, {}, &CgroupName::cgroup);
  names.erase(others.begin(), others.end());
}

// A stack follows its caller, or its caller's callee before it with all that
// this calls: most distances to the caller are 1 then.
void OrderNodes(Tables& tables) {
  const std::vector<Node> nodes = std::exchange(tables.nodes, {Node{}});
  // Callees of one caller beside each other, the last function first, as they
  // are taken from the end.
  std::vector<uint32_t> callees(nodes.size() - 1);
  std::iota(callees.begin(), callees.end(), 1u);
  std::ranges::sort(callees, [&](uint32_t a, uint32_t b) {
    return std::tuple(nodes[a].parent, nodes[b].function, a) <
           std::tuple(nodes[b].parent, nodes[a].function, b);
  });
  std::vector<uint32_t> first(nodes.size() + 1);
  for (const uint32_t callee : callees) ++first[nodes[callee].parent + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());

  tables.nodes.reserve(nodes.size());
  std::vector<uint32_t> places(nodes.size());
  std::vector<uint32_t> waiting;
  const auto add_callees = [&](uint32_t node) {
    waiting.insert(waiting.end(), callees.begin() + first[node],
                   callees.begin() + first[node + 1]);
  };
  add_callees(0);
  while (!waiting.empty()) {
    const uint32_t node = waiting.back();
    waiting.pop_back();
    places[node] = static_cast<uint32_t>(tables.nodes.size());
    tables.nodes.push_back({.parent = places[nodes[node].parent],
                            .function = nodes[node].function});
    add_callees(node);
  }
  for (Row& row : tables.rows) {
    row.user = places[row.user];
    row.kernel = places[row.kernel];
  }
}

// Strings in the order in which columns name them.
class StringOrder {
 public:
  explicit StringOrder(const StringTable& before)
      : before_(before), places_(before.size()) {}

  template <typename Element, typename... Members>
  void Take(std::vector<Element>& table, Members... members) {
    const auto take_all = [&](auto member) {
      for (Element& element : table) Take(element.*member);
    };
    (take_all(members), ...);
  }
  StringTable Finish() && { return std::move(strings_); }
  size_t text_bytes() const { return text_bytes_; }

 private:
  void Take(uint32_t& text) {
    uint32_t& place = places_[text];
    if (place == 0 && text != 0) {
      const std::string_view bytes = before_.Get(text);
      place = strings_.Intern(bytes);
      text_bytes_ += bytes.size();
    }
    text = place;
  }

  const StringTable& before_;
  std::vector<uint32_t> places_;  // 0: it has none yet, or is the empty one
  StringTable strings_;
  size_t text_bytes_ = 0;
};

void OrderStrings(Tables& tables) {
  StringOrder order(tables.strings);
  order.Take(tables.functions, &Function::kind, &Function::reason,
             &Function::object, &Function::build_id, &Function::name,
             &Function::file, &Function::function);
  order.Take(tables.series, &Series::cgroup, &Series::comm);
  order.Take(tables.cgroup_names, &CgroupName::cgroup,
             &CgroupName::pod_namespace, &CgroupName::pod,
             &CgroupName::container);
  order.Take(tables.kinds, &Kind::name, &Kind::unit, &Kind::event);
  order.Take(tables.settings, &Setting::version, &Setting::hostname,
             &Setting::kernel_release, &Setting::architecture, &Setting::cpus,
             &Setting::stack_store, &Setting::unwind, &Setting::warnings,
             &Setting::boot, &Setting::run);
  order.Take(tables.counters, &Counter::name);
  tables.text_bytes = order.text_bytes();
  tables.strings = std::move(order).Finish();
}

}  // namespace

void OrderTables(Tables& tables) {
  // Functions before nodes, which are sorted by their functions' places.
  // Strings last, as all others are sorted by texts.
  OrderFunctions(tables);
  OrderNodes(tables);
  OrderSeries(tables);
  OrderCgroupNames(tables);
  OrderStrings(tables);
}

}  // namespace profd::history
