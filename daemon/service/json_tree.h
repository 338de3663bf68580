// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/result.h"

namespace profd {

// A JSON value that remembers where it was written, which is what an error
// message has to say. Owns its strings.
struct JsonNode {
  enum class Type : uint8_t {
    kNull,
    kFlag,
    kNumber,  // a whole number from 0 to 2^64 - 1
    kOther,   // any other number
    kText,
    kList,
    kObject,
  };
  Type type = Type::kNull;
  size_t line = 0;  // counts from 1; of an object's or list's bracket
  bool flag = false;
  uint64_t number = 0;
  std::string text = {};
  std::vector<JsonNode> elements = {};
  std::vector<std::pair<std::string, JsonNode>> members = {};  // as written
};

// What a message calls the type: "a whole number", "a list".
std::string_view NameOf(JsonNode::Type type);

// Parses JSON in which // and /* */ comments may stand. Every byte may be
// hostile: values nest at most 16 deep, and a key is there once per object.
// kCorrupt: the message begins with "LINE: ".
ksym::Result<JsonNode> ParseJsonTree(std::string_view text);

}  // namespace profd
