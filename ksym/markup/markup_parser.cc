// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_parser.h"

#include <algorithm>

#include "ksym/base/text.h"

namespace ksym {
namespace {

constexpr std::string_view kBegin = "{{{";
constexpr std::string_view kEnd = "}}}";
constexpr size_t kNone = std::string_view::npos;

// Bytes of the control sequence that `text` begins with, or 0.
size_t ControlSequenceSize(std::string_view text) {
  if (!text.starts_with("\033[") || text.size() < 4) return 0;
  const char first = text[2];
  if (text[3] == 'm') return first == '0' || first == '1' ? 4 : 0;
  const bool is_color = text.size() >= 5 && first == '3' && text[3] >= '0' &&
                        text[3] <= '7' && text[4] == 'm';
  return is_color ? 5 : 0;
}

size_t FindControlSequence(std::string_view text) {
  size_t at = text.find('\033');
  while (at != kNone && ControlSequenceSize(text.substr(at)) == 0) {
    at = text.find('\033', at + 1);
  }
  return at;
}

}  // namespace

void MarkupParser::BeginLine(std::string_view line) {
  rest_ = line;
  text_ = {};
  element_ = {};
}

bool MarkupParser::Next(MarkupNode& node) {
  while (true) {
    if (!text_.empty()) {
      TakeText(node);
      return true;
    }
    if (!element_.empty()) {
      TakeElement(node);
      return true;
    }
    if (rest_.empty()) return false;
    if (in_element()) {
      ContinueElement();
    } else {
      FindElement();
    }
  }
}

void MarkupParser::Finish() {
  BeginLine({});
  finished_.swap(unfinished_);
  unfinished_.clear();
  text_ = finished_;
}

void MarkupParser::TakeText(MarkupNode& node) {
  const size_t sequence = FindControlSequence(text_);
  const size_t size = sequence == 0 ? ControlSequenceSize(text_)
                                    : std::min(sequence, text_.size());
  node.text = text_.substr(0, size);
  node.tag = {};
  node.fields.clear();
  text_.remove_prefix(size);
}

void MarkupParser::TakeElement(MarkupNode& node) {
  node.text = element_;
  element_.remove_prefix(kBegin.size());
  element_.remove_suffix(kEnd.size());
  const size_t colon = element_.find(':');
  node.tag = element_.substr(0, colon);
  node.fields.clear();
  if (colon != kNone) {
    std::string_view fields = element_.substr(colon);
    while (!fields.empty()) {
      fields.remove_prefix(1);
      node.fields.push_back(fields.substr(0, fields.find(':')));
      fields.remove_prefix(node.fields.back().size());
    }
  }
  element_ = {};
}

void MarkupParser::FindElement() {
  for (size_t from = 0;;) {
    const size_t begin = rest_.find(kBegin, from);
    if (begin == kNone) break;
    const size_t end = rest_.find(kEnd, begin + kBegin.size());
    if (end == kNone) break;
    from = end + kEnd.size();
    const char first = rest_[begin + kBegin.size()];
    const bool has_tag = end > begin + kBegin.size() && first != ':';
    if (!has_tag) continue;
    text_ = rest_.substr(0, begin);
    element_ = rest_.substr(begin, from - begin);
    rest_.remove_prefix(from);
    return;
  }
  const size_t unfinished = FindUnfinished();
  text_ = rest_.substr(0, unfinished);
  if (unfinished != kNone) unfinished_ = rest_.substr(unfinished);
  rest_ = {};
}

// Where a multi-line element begins: with the last "{{{", which nothing ends.
size_t MarkupParser::FindUnfinished() const {
  const size_t begin = rest_.rfind(kBegin);
  if (begin == kNone) return kNone;
  std::string_view content = rest_.substr(begin + kBegin.size());
  if (content.find(kEnd) != kNone || content.find(':') == kNone) return kNone;
  const std::string_view tag = TakeField(content, ':');
  return std::ranges::find(multi_line_tags_, tag) == multi_line_tags_.end()
             ? kNone
             : begin;
}

void MarkupParser::ContinueElement() {
  const size_t end = rest_.find(kEnd);
  const size_t size = end == kNone ? rest_.size() : end + kEnd.size();
  if (size >
      max_element_bytes_ - std::min(max_element_bytes_, unfinished_.size())) {
    ++oversized_elements_;
    finished_.swap(unfinished_);
    unfinished_.clear();
    text_ = finished_;
    return;
  }
  unfinished_ += rest_.substr(0, size);
  rest_.remove_prefix(size);
  if (end == kNone) return;
  finished_.swap(unfinished_);
  unfinished_.clear();
  element_ = finished_;
}

}  // namespace ksym
