// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/json_tree.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace profd {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxDepth = 16;

// Tells how far the parser has read, which knows of no position itself.
// NOLINTBEGIN(readability-identifier-naming): an iterator's names are given
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** seen_;
};
// NOLINTEND(readability-identifier-naming)

// Counts lines up to places that only move forward.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text)
      : at_(std::to_address(text.begin())), end_(std::to_address(text.end())) {}

  // The line of the token that ends before `stop`. After a number the parser
  // has read one byte more; a newline there belongs to the token's own line.
  size_t LineBefore(const char* stop) {
    if (stop != at_) stop = std::max(at_, stop - 1);
    lines_ += static_cast<size_t>(std::count(at_, std::min(stop, end_), '\n'));
    at_ = stop;
    return lines_ + 1;
  }

 private:
  const char* at_;
  const char* end_;
  size_t lines_ = 0;
};

// Receives the parser's events and builds the tree. The names of its functions
// are nlohmann's.
// NOLINTBEGIN(readability-identifier-naming)
class TreeBuilder {
 public:
  explicit TreeBuilder(std::string_view text) : lines_(text) {}

  const char** seen() { return &seen_; }
  void StartAt(const char* begin) { seen_ = begin; }
  JsonNode TakeRoot() { return std::move(root_); }
  const std::optional<std::string>& error() const { return error_; }

  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  bool null() { return Add(JsonNode()); }
  bool boolean(bool value) {
    return Add({.type = JsonNode::Type::kFlag, .flag = value});
  }
  bool number_integer(number_integer_t /*value*/) {
    return Add({.type = JsonNode::Type::kOther});
  }
  bool number_unsigned(number_unsigned_t value) {
    return Add({.type = JsonNode::Type::kNumber, .number = value});
  }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) {
    return Add({.type = JsonNode::Type::kOther});
  }
  bool string(string_t& value) {
    return Add({.type = JsonNode::Type::kText, .text = std::move(value)});
  }
  // JSON as text has none.
  bool binary(binary_t& /*value*/) { return false; }
  bool start_object(size_t /*elements*/) {
    return Open({.type = JsonNode::Type::kObject});
  }
  bool start_array(size_t /*elements*/) {
    return Open({.type = JsonNode::Type::kList});
  }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(string_t& name) {
    auto& members = open_.back()->members;
    const bool twice = std::ranges::any_of(
        members, [&](const auto& member) { return member.first == name; });
    if (twice) return Refuse("the key \"" + name + "\" is there twice");
    members.emplace_back(std::move(name), JsonNode());
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const Json::exception& error) {
    // "[json.exception...] parse error at line 1, column 2: what is wrong"
    const std::string_view what = error.what();
    const size_t colon = what.find(": ");
    return Refuse(std::string(
        colon == std::string_view::npos ? what : what.substr(colon + 2)));
  }

 private:
  bool Refuse(std::string why) {
    error_ = std::to_string(lines_.LineBefore(seen_)) + ": " + std::move(why);
    return false;
  }
  JsonNode* Place(JsonNode node) {
    node.line = lines_.LineBefore(seen_);
    JsonNode* place = &root_;
    if (!open_.empty() && open_.back()->type == JsonNode::Type::kObject) {
      place = &open_.back()->members.back().second;
    } else if (!open_.empty()) {
      place = &open_.back()->elements.emplace_back();
    }
    *place = std::move(node);
    return place;
  }
  bool Add(JsonNode node) {
    Place(std::move(node));
    return true;
  }
  bool Open(JsonNode node) {
    if (open_.size() == kMaxDepth) {
      return Refuse("values are nested more than " + std::to_string(kMaxDepth) +
                    " deep");
    }
    open_.push_back(Place(std::move(node)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  LineCounter lines_;
  const char* seen_ = nullptr;
  JsonNode root_;
  // From the root to the one that is being filled. Only the last one grows, so
  // the others do not move.
  std::vector<JsonNode*> open_;
  std::optional<std::string> error_;
};
// NOLINTEND(readability-identifier-naming)

}  // namespace

std::string_view NameOf(JsonNode::Type type) {
  switch (type) {
    case JsonNode::Type::kNull:
      return "null";
    case JsonNode::Type::kFlag:
      return "true or false";
    case JsonNode::Type::kNumber:
      return "a whole number";
    case JsonNode::Type::kOther:
      return "a negative or broken number";
    case JsonNode::Type::kText:
      return "a text";
    case JsonNode::Type::kList:
      return "a list";
    case JsonNode::Type::kObject:
      return "an object";
  }
  return "";
}

ksym::Result<JsonNode> ParseJsonTree(std::string_view text) {
  TreeBuilder builder(text);
  const char* const start = std::to_address(text.begin());
  builder.StartAt(start);
  const CountingIterator begin(start, builder.seen());
  const CountingIterator end(start + text.size(), builder.seen());
  const bool parsed =
      Json::sax_parse(begin, end, &builder, Json::input_format_t::json,
                      /*strict=*/true, /*ignore_comments=*/true);
  if (!parsed) {
    return ksym::Fail(ksym::ErrorCode::kCorrupt,
                      builder.error().value_or("1: not JSON"));
  }
  return builder.TakeRoot();
}

}  // namespace profd
