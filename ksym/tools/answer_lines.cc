// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/answer_lines.h"

#include <algorithm>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/tools/symbolize_output.h"

namespace ksym {
namespace {

using Style = SymbolizeOptions::Style;

constexpr size_t kMaxBatchLines = 8192;
// Answers of a batch that wait for their turn, as text or as frames; what goes
// beyond is looked up when it has its turn.
constexpr size_t kMaxBatchBytes = size_t{4} << 20;
constexpr size_t kMaxBatchFrames = size_t{1} << 17;
// Bytes of answers that wait to be written.
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

void LineAnswerer::Find(const Query& query) {
  if (query.address) {
    source_.Resolve(*query.address, answer_);
    return;
  }
  answer_ = {};
  answer_.reason = "no-address";
}

void LineAnswerer::Write(const Query& query, std::string& out) {
  AppendAnswer(query.address, answer_, style_, out);
  if (style_ == Style::kJson) out += '\n';
}

void LineAnswerer::Keep(Query& query) {
  query.state = State::kKept;
  query.module = answer_.module;
  query.symbol_start = answer_.symbol_start;
  query.begin = static_cast<uint32_t>(frames_.size());
  frames_.insert(frames_.end(), answer_.frames.begin(), answer_.frames.end());
  query.end = static_cast<uint32_t>(frames_.size());
}

void LineAnswerer::TakeKept(const Query& query) {
  ClearAnswer(answer_);
  answer_.module = query.module;
  answer_.symbol_start = query.symbol_start;
  answer_.frames.assign(frames_.begin() + query.begin,
                        frames_.begin() + query.end);
}

Status LineAnswerer::AnswerByAddress() {
  order_.clear();
  addresses_.clear();
  for (const Query& query : queries_) {
    order_.push_back(
        {.address = query.address.value_or(0),
         .query = static_cast<uint32_t>(&query - queries_.data())});
    if (query.address) addresses_.push_back(*query.address);
  }
  const auto prepared = source_.Prepare(addresses_);
  if (!prepared) return prepared;
  std::ranges::sort(order_, {}, &Place::address);
  texts_.clear();
  frames_.clear();
  for (const Place& place : order_) {
    if (texts_.size() >= kMaxBatchBytes || frames_.size() >= kMaxBatchFrames) {
      break;
    }
    Query& query = queries_[place.query];
    Find(query);
    // Frames of views are kept and written later: a text would be copied twice.
    if (answer_.is_kept) {
      Keep(query);
      continue;
    }
    query.state = State::kWritten;
    query.begin = static_cast<uint32_t>(texts_.size());
    Write(query, texts_);
    query.end = static_cast<uint32_t>(texts_.size());
  }
  return {};
}

Status LineAnswerer::WriteBatch() {
  const auto answered = AnswerByAddress();
  if (!answered) return answered;
  for (const Query& query : queries_) {
    if (query.state == State::kWritten) {
      out_.append(texts_, query.begin, query.end - query.begin);
    } else {
      if (query.state == State::kKept) {
        TakeKept(query);
      } else {
        Find(query);
      }
      Write(query, out_);
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
      queries_.emplace_back().address =
          ParseHexAddress(Trimmed(TakeField(lines, '\n')));
    }
    const auto written = WriteBatch();
    if (!written) return written;
  }
  return {};
}

}  // namespace ksym
