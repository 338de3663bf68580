// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/flame_page.h"

#include <fmt/format.h>

#include <cassert>
#include <cstdint>
#include <iterator>
#include <utility>

#include "daemon/output/cgroup_path.h"
#include "daemon/output/safe_name.h"
#include "flamegraph_page.h"

namespace profd {
namespace {

// Everything in front of a mark; `page` becomes what follows it.
std::string_view TakeUpTo(std::string_view mark, std::string_view& page) {
  const size_t at = page.find(mark);
  assert(at != std::string_view::npos);
  const std::string_view front = page.substr(0, at);
  page.remove_prefix(at + mark.size());
  return front;
}

void AppendFrames(const FlameTree& tree, std::string& out) {
  std::map<std::string_view, size_t> modules;
  for (const FlameFrame& frame : tree.frames()) {
    modules.emplace(frame.object, 0);
  }
  out += ",\n\"modules\":[";
  size_t next = 0;
  for (auto& [module, number] : modules) {
    if (next != 0) out += ',';
    AppendScriptText(module, out);
    number = next++;
  }
  out += "],\n\"frames\":[";
  for (const FlameFrame& frame : tree.frames()) {
    out += &frame == tree.frames().data() ? "\n[" : ",\n[";
    AppendScriptText(frame.name, out);
    fmt::format_to(std::back_inserter(out), ",{},{}]", modules.at(frame.object),
                   static_cast<int>(frame.kind));
  }
  out += ']';
}

// All but what starts it.
std::string Scripts() {
  std::string out;
  for (const std::string_view script :
       {web::kTreeJs, web::kDataJs, web::kFunctionsJs, web::kNamesJs,
        web::kLayoutJs, web::kColoursJs, web::kStateJs, web::kExportJs,
        web::kPictureJs, web::kTableJs, web::kDetailsJs, web::kFunctionListJs,
        web::kControlsJs, web::kMainJs}) {
    out += script;
  }
  return out;
}

}  // namespace

// In a script element nothing but '<' can end or hide what follows.
void AppendScriptText(std::string_view text, std::string& out) {
  std::string json;
  AppendJsonText(text, json);
  out += '"';
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendFlameFacts(const FlameFacts& facts, std::string& out) {
  bool first = true;
  for (const auto& [key, value] : facts) {
    out += std::exchange(first, false) ? "[" : ",[";
    AppendScriptText(key, out);
    out += ',';
    AppendScriptText(value, out);
    out += ']';
  }
}

void AppendFlameUnit(const SampleKind& kind, std::string& out) {
  if (!kind.has_values) return;
  out += ",\n\"unit\":";
  AppendScriptText(UnitName(kind), out);
}

void AppendFlameNodes(const FlameTree& tree, std::string& out) {
  AppendFrames(tree, out);
  // A parent is told by how far it is in front: short numbers.
  out += ",\n\"nodes\":[0,0";
  for (uint32_t i = 1; i < tree.nodes().size(); ++i) {
    const FlameTree::Node& node = tree.nodes()[i];
    fmt::format_to(std::back_inserter(out), ",{},{}", i - node.parent,
                   node.frame);
  }
  out += ']';
}

FlameOwners::FlameOwners(const FlameTree& tree, const SampleLabels& labels) {
  std::map<Group, uint32_t> numbers = {{Group(), 0}};
  groups_.emplace_back();
  for (const std::string& path : tree.cgroups()) {
    const CgroupParts parts = ParseCgroupPath(path);
    Group group;
    if (labels.unit) group.first = parts.unit;
    if (labels.container_id) group.second = parts.container_id;
    const auto [place, is_new] =
        numbers.emplace(group, static_cast<uint32_t>(groups_.size()));
    if (is_new) groups_.push_back(std::move(group));
    group_of_cgroup_.push_back(place->second);
  }
}

void FlameOwners::AppendLeaf(const FlameTree::Leaf& leaf, uint32_t& last,
                             std::string& list) {
  const Owner owner = {leaf.pid, leaf.tid, group_of_cgroup_[leaf.cgroup]};
  const auto [place, is_new] = numbers_.emplace(owner, owners_.size());
  if (is_new) owners_.push_back(owner);
  fmt::format_to(std::back_inserter(list), "{}{},{},{}",
                 list.empty() ? "" : ",", leaf.node - last, place->second,
                 leaf.count);
  last = leaf.node;
}

void FlameOwners::AppendTo(std::string& out) const {
  out += ",\n\"owners\":[";
  for (const Owner& owner : owners_) {
    fmt::format_to(std::back_inserter(out), "{}{},{},{}",
                   &owner == owners_.data() ? "" : ",", owner[0], owner[1],
                   owner[2]);
  }
  out += ']';
  if (groups_.size() < 2) return;
  out += ",\n\"groups\":[";
  AppendFlameFacts(groups_, out);
  out += ']';
}

std::string FlamePageWith(std::string_view data) {
  std::string_view page = web::kFlamegraphHtml;
  std::string out(TakeUpTo("@STYLE@", page));
  out += web::kFlamegraphCss;
  out += TakeUpTo("@BODY@", page);
  out += web::kFlamegraphBodyHtml;
  out += TakeUpTo("@DATA@", page);
  out += data;
  out += TakeUpTo("@SCRIPT@", page);
  out += Scripts() += web::kStartPageJs;
  return out += page;
}

std::string EmptyFlamePage() {
  std::string_view page = web::kFlamegraphFrameHtml;
  std::string out(TakeUpTo("@BODY@", page));
  out += web::kFlamegraphBodyHtml;
  return out += page;
}

std::string FlamePageStyle() { return std::string(web::kFlamegraphCss); }

std::string FlamePageScript() {
  std::string out = Scripts();
  return out += web::kStartFrameJs;
}

}  // namespace profd
