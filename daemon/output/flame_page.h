// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/flame_tree.h"
#include "daemon/output/options.h"

namespace profd {

// What the pages of flame graphs are made of: JSON between the sources in
// daemon/web.

// A JSON string that may stand in a script element: with its quotes.
void AppendScriptText(std::string_view text, std::string& out);

// What the page says about the capture: names and values.
using FlameFacts = std::vector<std::pair<std::string, std::string>>;
// The inside of the list.
void AppendFlameFacts(const FlameFacts& facts, std::string& out);

// The member "unit" with a comma in front, where the kind's numbers are not of
// samples.
void AppendFlameUnit(const SampleKind& kind, std::string& out);

// The members "modules", "frames" and "nodes", with a comma in front.
void AppendFlameNodes(const FlameTree& tree, std::string& out);

// The owners of samples: numbers for processes or threads with what is known
// of their cgroups, and the lists of leaves that name them.
class FlameOwners {
 public:
  // What may be said of cgroups. `tree` must live as long.
  FlameOwners(const FlameTree& tree, const SampleLabels& labels);
  // The next leaf of a list: how far its node is behind the one before, which
  // is `last`, then its owner and its samples. Commas stand between.
  void AppendLeaf(const FlameTree::Leaf& leaf, uint32_t& last,
                  std::string& list);
  // The members "owners" (a pid, a tid and a group each) and, if there is any
  // group, "groups" (unit and container each), with a comma in front.
  void AppendTo(std::string& out) const;

 private:
  using Group = std::pair<std::string, std::string>;
  using Owner = std::array<uint32_t, 3>;
  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_cgroup_;
  std::map<Owner, size_t> numbers_;
  std::vector<Owner> owners_;
};

// The page that shows the data, a JSON object.
std::string FlamePageWith(std::string_view data);

// The same page without data, as a frame of another page, which gives it the
// data as a message; and the files "/flame.css" and "/flame.js" that it asks
// its server for.
std::string EmptyFlamePage();
std::string FlamePageStyle();
std::string FlamePageScript();

}  // namespace profd
