#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/flame_tree.h"

namespace profd {

// What the pages of flame graphs are made of: JSON between the sources in
// daemon/web.

// A JSON string that may stand in a script element: with its quotes.
void AppendScriptText(std::string_view text, std::string& out);

// What the page says about the capture: names and values.
using FlameFacts = std::vector<std::pair<std::string, std::string>>;
// The inside of the list.
void AppendFlameFacts(const FlameFacts& facts, std::string& out);

// The members "modules", "frames" and "nodes", with a comma in front.
void AppendFlameNodes(const FlameTree& tree, std::string& out);

// The page that shows the data, a JSON object.
std::string FlamePageWith(std::string_view data);

}  // namespace profd
