#include "daemon/output/flame_page.h"

#include <fmt/format.h>

#include <cassert>
#include <cstdint>
#include <iterator>
#include <map>

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
    modules.emplace(frame.module, 0);
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
    fmt::format_to(std::back_inserter(out), ",{},{}]", modules.at(frame.module),
                   static_cast<int>(frame.kind));
  }
  out += ']';
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

std::string FlamePageWith(std::string_view data) {
  std::string_view page = web::kFlamegraphHtml;
  std::string out(TakeUpTo("@STYLE@", page));
  out += web::kFlamegraphCss;
  out += TakeUpTo("@DATA@", page);
  out += data;
  out += TakeUpTo("@SCRIPT@", page);
  for (const std::string_view script :
       {web::kTreeJs, web::kViewJs, web::kMainJs}) {
    out += script;
  }
  return out += page;
}

}  // namespace profd
