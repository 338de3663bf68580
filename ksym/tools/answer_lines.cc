#include "ksym/tools/answer_lines.h"

#include <algorithm>
#include <numeric>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/tools/symbolize_output.h"

namespace ksym {
namespace {

using Style = SymbolizeOptions::Style;

constexpr size_t kMaxBatchLines = 1024;
// Answers of a batch that wait for their turn; what goes beyond is looked up
// when it has its turn.
constexpr size_t kMaxBatchBytes = size_t{4} << 20;
// Of answers that wait to be written.
constexpr size_t kMaxOutputBytes = size_t{1} << 16;

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  const size_t first = line.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

void AppendAnswer(std::optional<uint64_t> address, const AddressAnswer& answer,
                  Style style, std::string& out) {
  switch (style) {
    case Style::kLlvm:
      AppendLlvmStyle(answer, out);
      break;
    case Style::kGnu:
      AppendGnuStyle(answer, out);
      break;
    case Style::kJson:
      AppendJson(address, answer, out);
      break;
  }
}

void LineAnswerer::AppendAnswerTo(const Query& query, std::string& out) {
  if (query.address) {
    source_.Resolve(*query.address, answer_);
  } else {
    answer_ = {};
    answer_.reason = "no-address";
  }
  AppendAnswer(query.address, answer_, style_, out);
  if (style_ == Style::kJson) out += '\n';
}

void LineAnswerer::AnswerByAddress() {
  order_.resize(queries_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::ranges::sort(order_, {},
                    [this](uint32_t i) { return queries_[i].address; });
  texts_.clear();
  for (const uint32_t i : order_) {
    if (texts_.size() >= kMaxBatchBytes) return;
    Query& query = queries_[i];
    query.begin = texts_.size();
    AppendAnswerTo(query, texts_);
    query.end = texts_.size();
    query.is_answered = true;
  }
}

Status LineAnswerer::WriteBatch() {
  AnswerByAddress();
  for (const Query& query : queries_) {
    if (query.is_answered) {
      out_.append(texts_, query.begin, query.end - query.begin);
    } else {
      AppendAnswerTo(query, out_);
    }
    if (out_.size() < kMaxOutputBytes) continue;
    const auto written = WriteAll(fd_, out_);
    out_.clear();
    if (!written) return written;
  }
  const auto written = WriteAll(fd_, out_);
  out_.clear();
  return written;
}

Status LineAnswerer::Answer(std::string_view lines) {
  while (!lines.empty()) {
    queries_.clear();
    while (!lines.empty() && queries_.size() < kMaxBatchLines) {
      queries_.push_back(
          {.address = ParseHexAddress(Trimmed(TakeField(lines, '\n')))});
    }
    const auto written = WriteBatch();
    if (!written) return written;
  }
  return {};
}

}  // namespace ksym
