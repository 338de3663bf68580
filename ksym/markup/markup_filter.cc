// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_filter.h"

#include <algorithm>

namespace ksym {
namespace {

constexpr size_t kFlushBytes = size_t{256} << 10;
constexpr size_t kNone = std::string_view::npos;

}  // namespace

// Finds lines without markup in one block of bytes. Each byte is looked at
// once for each of the two signs, whatever is asked for.
class MarkupFilter::BlockScanner {
 public:
  explicit BlockScanner(std::string_view block) : block_(block) {}

  // How many bytes of whole lines from `from` on have no sign of markup.
  size_t PlainSize(size_t from) {
    const size_t sign = std::min(Find("{{{", from, next_element_),
                                 Find("\033", from, next_sgr_));
    if (sign == from) return 0;
    const std::string_view plain = block_.substr(from, sign - from);
    return plain.rfind('\n') + 1;
  }

 private:
  size_t Find(std::string_view sign, size_t from, size_t& next) const {
    if (next == kNone || next < from) {
      next = std::min(block_.find(sign, from), block_.size());
    }
    return next;
  }

  std::string_view block_;
  // kNone until it was looked for.
  size_t next_element_ = kNone;
  size_t next_sgr_ = kNone;
};

MarkupFilter::MarkupFilter(const MarkupFilterOptions& options,
                           MarkupSymbolizer& symbolizer, MarkupOutput& output)
    : options_(options),
      output_(output),
      printer_(options.color, log_),
      reporter_(report_),
      renderer_({context_, symbolizer, printer_, reporter_}) {}

bool MarkupFilter::is_plain_state() const {
  return partial_.empty() && !inside_cut_line_ && !parser_.in_element() &&
         module_line_ == nullptr && printer_.in_default_state();
}

void MarkupFilter::Push(std::string_view bytes) {
  BlockScanner scanner(bytes);
  for (std::string_view rest = bytes; !rest.empty();) {
    if (is_plain_state()) {
      const size_t plain = scanner.PlainSize(bytes.size() - rest.size());
      log_ += rest.substr(0, plain);
      rest.remove_prefix(plain);
      FlushIfLarge();
      if (rest.empty()) break;
    }
    TakeLine(rest);
  }
  Flush();
}

void MarkupFilter::TakeLine(std::string_view& bytes) {
  const size_t room = options_.max_line_bytes - partial_.size();
  const size_t newline = bytes.substr(0, room).find('\n');
  const size_t size =
      newline == kNone ? std::min(room, bytes.size()) : newline + 1;
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  if (newline != kNone && partial_.empty()) {
    FilterLine(taken, LineEnd::kNewline);
    return;
  }
  partial_ += taken;
  if (newline != kNone) {
    FilterLine(partial_, LineEnd::kNewline);
    partial_.clear();
  } else if (partial_.size() == options_.max_line_bytes) {
    const size_t cut = CutSize(partial_);
    FilterLine(std::string_view(partial_).substr(0, cut), LineEnd::kCut);
    partial_.erase(0, cut);
  }
}

// Where to cut a line that is too long: before what may be the beginning of an
// element or a control sequence, if that is in the second half.
size_t MarkupFilter::CutSize(std::string_view line) const {
  constexpr size_t kSequenceBytes = 5;
  const size_t begin = line.rfind("{{{");
  size_t cut = line.size();
  if (begin != kNone && line.find("}}}", begin) == kNone) {
    cut = begin;
  } else if (const size_t escape = line.rfind('\033');
             escape != kNone && line.size() - escape < kSequenceBytes) {
    cut = escape;
  }
  while (cut > 0 && line[cut - 1] == '{') --cut;
  return cut > line.size() / 2 ? cut : line.size();
}

void MarkupFilter::FilterLine(std::string_view line, LineEnd end) {
  if (!inside_cut_line_) printer_.ResetState();
  const bool is_part = inside_cut_line_ || end == LineEnd::kCut;
  if (is_part && !counted_cut_line_ && line.find_first_of("{\033") != kNone) {
    counted_cut_line_ = true;
    ++cut_lines_;
  }
  inside_cut_line_ = end == LineEnd::kCut;
  ends_crlf_ = line.ends_with("\r\n");
  if (!drop_rest_) {
    reporter_.BeginLine(line);
    parser_.BeginLine(line);
    FilterNodes();
  }
  if (end == LineEnd::kNewline) {
    drop_rest_ = false;
    counted_cut_line_ = false;
  }
  FlushIfLarge();
}

void MarkupFilter::FilterNodes() {
  deferred_count_ = 0;
  while (true) {
    if (deferred_count_ == deferred_.size()) deferred_.emplace_back();
    MarkupNode& node = deferred_[deferred_count_];
    if (!parser_.Next(node)) break;
    if (TryContext(node)) {
      drop_rest_ = true;
      return;
    }
    ++deferred_count_;
  }
  EndModuleLine();
  PrintDeferred();
}

void MarkupFilter::PrintDeferred() {
  for (size_t i = 0; i < deferred_count_; ++i) {
    renderer_.Print(deferred_[i], line_end());
    FlushIfLarge();
  }
}

void MarkupFilter::Finish() {
  if (!partial_.empty() || inside_cut_line_) {
    partial_ += '\n';
    FilterLine(partial_, LineEnd::kNewline);
    partial_.clear();
  }
  parser_.Finish();
  reporter_.BeginLine({});
  MarkupNode node;
  while (parser_.Next(node)) renderer_.Print(node, line_end());
  EndModuleLine();
  printer_.ResetState();
  context_.Reset();
  renderer_.Reset();
  Flush();
}

MarkupFilter::Statistics MarkupFilter::statistics() const {
  return {cut_lines_, parser_.oversized_elements(), refused_context_};
}

void MarkupFilter::FlushIfLarge() {
  if (log_.size() + report_.size() >= kFlushBytes) Flush();
}

void MarkupFilter::Flush() {
  if (!log_.empty()) output_.WriteLog(log_);
  if (!report_.empty()) output_.WriteReport(report_);
  log_.clear();
  report_.clear();
}

}  // namespace ksym
