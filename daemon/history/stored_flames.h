// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/file_flame.h"
#include "daemon/history/flame_nodes.h"
#include "daemon/history/tables.h"
#include "daemon/profile/accounting.h"
#include "ksym/base/result.h"

namespace profd::history {

// All samples of a file of one name and unit of its kinds as FileFlame makes a
// tree of them.
struct StoredFlame {
  uint32_t kind = 0;  // the first of these kinds
  uint64_t rare_up_to = 0;
  // Each sample stands for as much, or more.
  uint64_t value_of_sample = 0;
  // Its roots are places in the list of roots: from here up to those of the
  // next flame. So are its nodes and its counters.
  uint32_t first_root = 0;
  uint32_t roots = 0;
  uint32_t first_node = 0;
  uint32_t nodes = 0;
  uint32_t first_counter = 0;
  uint32_t counters = 0;

  friend bool operator==(const StoredFlame&, const StoredFlame&) = default;
};

// A FlameRoot as it is stored.
struct StoredRoot {
  uint32_t comm = 0;  // a string of the file
  uint32_t user_state = 0;
  uint32_t kernel_state = 0;
  uint32_t parked = 0;  // 0 or 1

  friend bool operator==(const StoredRoot&, const StoredRoot&) = default;
};

// A FlameNode as it is stored.
struct StoredNode {
  uint32_t parent = 0;  // its place; 0: it is the flame's next root
  // 0: kRareFrame; else one more than a function of the file. 0 of a root.
  uint32_t frame = 0;
  uint32_t is_kernel = 0;  // 0 or 1
  uint64_t count = 0;
  uint64_t more = 0;  // value, less count times value_of_sample

  friend bool operator==(const StoredNode&, const StoredNode&) = default;
};

// A segment stores these so that a flame graph of all of it needs neither its
// rows nor its stacks. Flame 0 is of no kind; its counters are what remains
// where no sample is wanted.
struct StoredFlames {
  std::vector<StoredFlame> flames;
  std::vector<StoredRoot> roots;
  std::vector<StoredNode> nodes = {StoredNode{}};  // node 0 is of no flame
  std::vector<Counter> counters;

  friend bool operator==(const StoredFlames&, const StoredFlames&) = default;
};

// The nodes that a stored flame has, give or take its roots and marks. Flame
// graphs that want more of a file are made of its rows.
inline constexpr size_t kStoredFlameNodes = size_t{1} << 16;

// Nothing where they would not be small beside the file. Sorts its rows; new
// names of counters become strings of the tables, which were checked. O(n log
// n) of the file, for each kind.
std::optional<StoredFlames> FlamesOf(Tables& tables);

// Whether they are trees, and have no more samples than they say. Their places
// are right.
ksym::Status CheckFlames(const StoredFlames& flames, const Tables& tables);

// As columns, each behind its size.
std::string EncodeFlames(const StoredFlames& flames);
// The bytes may come from anyone: they name nothing that the tables do not
// have, and hold to daemon/history/limits.h. The tables have no stacks and
// rows, which are not needed.
ksym::Result<StoredFlames> DecodeFlames(std::string_view bytes,
                                        const Tables& tables);

// The flame of a name and unit of kinds, or that of none.
const StoredFlame& FindFlame(const StoredFlames& flames, const Tables& tables,
                             std::string_view kind, std::string_view unit);
// The tree that FileFlame would give of its samples.
std::vector<FlameNode> NodesOf(const StoredFlames& flames,
                               const StoredFlame& flame);
std::vector<FlameRoot> RootsOf(const StoredFlames& flames,
                               const StoredFlame& flame);
// The sum of all parts' counts, without the samples of other kinds.
Accounting AccountingOf(const StoredFlames& flames, const StoredFlame& flame,
                        const Tables& tables);

}  // namespace profd::history
