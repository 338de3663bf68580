// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ksym {

// A piece of a line. The views are of the line, or of the parser where the
// element began on an earlier line.
struct MarkupNode {
  std::string_view text;  // as it stands in the log
  std::string_view tag;   // empty: text, or an SGR control sequence alone
  std::vector<std::string_view> fields;

  bool is_element() const { return !tag.empty(); }
};

// Cuts lines of a log into text, SGR control sequences ("\033[%um" with 0, 1
// and 30 to 37) and elements:
//   {{{bt:0:0x12345678:pc}}}
// An element is what stands between "{{{" and the next "}}}" and has a tag;
// whether tag and fields make sense is for others to say. Elements with one of
// the multi-line tags may go on over the following lines; any other "{{{"
// without an end on its line is text. One pass over each line. Not
// thread-safe.
class MarkupParser {
 public:
  // A longer multi-line element is text.
  static constexpr size_t kMaxElementBytes = size_t{1} << 20;

  explicit MarkupParser(std::vector<std::string> multi_line_tags = {"hexdict"},
                        size_t max_element_bytes = kMaxElementBytes)
      : multi_line_tags_(std::move(multi_line_tags)),
        max_element_bytes_(max_element_bytes) {}

  // Begins a line, with its newline. What is left of the one before is
  // dropped. `line` must live until the next call of BeginLine.
  void BeginLine(std::string_view line);
  // The line's next piece; false: there is none. `node` is overwritten and
  // keeps its memory.
  bool Next(MarkupNode& node);

  // The log ends: what has begun and not ended becomes text, for Next.
  void Finish();

  // Whether the next line continues an element.
  bool in_element() const { return !unfinished_.empty(); }
  // Multi-line elements that were too long.
  uint64_t oversized_elements() const { return oversized_elements_; }

 private:
  void TakeText(MarkupNode& node);
  void TakeElement(MarkupNode& node);
  // Moves the line up to and with its next element to text_ and element_.
  void FindElement();
  void ContinueElement();
  size_t FindUnfinished() const;

  const std::vector<std::string> multi_line_tags_;
  const size_t max_element_bytes_;
  std::string_view rest_;     // of the line, not looked at
  std::string_view text_;     // before element_
  std::string_view element_;  // with its braces
  std::string unfinished_;    // a multi-line element up to here
  std::string finished_;      // the last one, whole
  uint64_t oversized_elements_ = 0;
};

}  // namespace ksym
