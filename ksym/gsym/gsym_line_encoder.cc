// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_line_encoder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

#include "ksym/gsym/gsym_format.h"

namespace ksym {
namespace {

constexpr int64_t kSpecialOps = 256 - kGsymFirstSpecialOp;

size_t SlebBytes(int64_t value) {
  size_t bytes = 1;
  for (; value < -0x40 || value >= 0x40; value >>= 7) ++bytes;
  return bytes;
}

size_t UlebBytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

}  // namespace

// Steps that many rows share are weighed once. Those that fit no byte whatever
// the split matter too: what is left of them may fit.
void GsymLineEncoder::CountSteps(uint64_t start,
                                 const std::vector<LineRow>& rows) {
  steps_.clear();
  LineRow last = {start, 1, rows.front().line};
  for (const LineRow& row : rows) {
    steps_.push_back(
        {int64_t{row.line} - last.line, row.address - last.address, 1});
    last = row;
  }
  const auto key = [](const Step& step) {
    return std::tie(step.line, step.address);
  };
  std::ranges::sort(steps_, {}, key);
  size_t kept = 0;
  for (size_t i = 1; i < steps_.size(); ++i) {
    if (key(steps_[kept]) == key(steps_[i])) {
      ++steps_[kept].count;
    } else {
      steps_[++kept] = steps_[i];
    }
  }
  steps_.resize(kept + 1);
}

uint64_t GsymLineEncoder::Cost(const Split& split) const {
  uint64_t bytes = 0;
  const auto max_address = static_cast<uint64_t>(kSpecialOps / split.range);
  for (const Step& step : steps_) {
    const int64_t line = step.line - split.min;
    const bool is_small = step.address <= max_address;
    if (line >= 0 && line < split.range && is_small &&
        static_cast<int64_t>(step.address) * split.range + line < kSpecialOps) {
      bytes += step.count;
    } else if (is_small) {
      bytes += step.count * (2 + SlebBytes(line));
    } else {
      bytes += step.count * (1 + UlebBytes(step.address) +
                             (step.line == 0 ? 0 : 1 + SlebBytes(step.line)));
    }
  }
  return bytes;
}

// A walk downhill from the best of a few splits.
GsymLineEncoder::Split GsymLineEncoder::ChooseSplit() const {
  constexpr std::array<Split, 6> kStarts = {
      {{-3, 8}, {-1, 4}, {-8, 20}, {-4, 12}, {0, 1}, {-14, 36}}};
  Split best = kStarts.front();
  uint64_t best_cost = Cost(best);
  const auto consider = [&](const Split& split) {
    if (split.range < 1 || split.range > kSpecialOps) return false;
    const uint64_t cost = Cost(split);
    if (cost >= best_cost) return false;
    best = split;
    best_cost = cost;
    return true;
  };
  for (size_t i = 1; i < kStarts.size(); ++i) consider(kStarts[i]);
  constexpr size_t kMaxSteps = 12;
  for (size_t i = 0; i < kMaxSteps; ++i) {
    const Split from = best;
    const bool better = consider({from.min, from.range + 1}) ||
                        consider({from.min, from.range - 1}) ||
                        consider({from.min - 1, from.range + 1}) ||
                        consider({from.min + 1, from.range - 1});
    if (!better) break;
  }
  return best;
}

void GsymLineEncoder::EncodeStep(const Split& split, int64_t line,
                                 uint64_t address, ByteWriter& out) {
  const auto write_op = [&](GsymLineOp op) {
    out.Write(static_cast<uint8_t>(op));
  };
  const auto write_special = [&](int64_t from_min) {
    out.Write(
        static_cast<uint8_t>(kGsymFirstSpecialOp + from_min +
                             static_cast<int64_t>(address) * split.range));
  };
  // Whether one byte can advance the address so far, and the line by `min`.
  const bool is_small =
      address <= static_cast<uint64_t>((kSpecialOps - 1) / split.range);
  const int64_t from_min = line - split.min;
  if (is_small && from_min >= 0 && from_min < split.range &&
      static_cast<int64_t>(address) * split.range + from_min < kSpecialOps) {
    write_special(from_min);
  } else if (is_small) {
    // The byte behind it still does the address, and `min` of the line.
    write_op(GsymLineOp::kAdvanceLine);
    out.WriteSleb128(from_min);
    write_special(0);
  } else {
    // The line first: advancing the address makes the row.
    if (line != 0) {
      write_op(GsymLineOp::kAdvanceLine);
      out.WriteSleb128(line);
    }
    write_op(GsymLineOp::kAdvanceAddress);
    out.WriteUleb128(address);
  }
}

void GsymLineEncoder::Encode(uint64_t start, const std::vector<LineRow>& rows,
                             ByteWriter& out) {
  CountSteps(start, rows);
  const Split split = ChooseSplit();
  out.WriteSleb128(split.min);
  out.WriteSleb128(split.min + split.range - 1);
  out.WriteUleb128(rows.front().line);
  LineRow last = {start, 1, rows.front().line};
  for (const LineRow& row : rows) {
    if (row.file != last.file) {
      out.Write(static_cast<uint8_t>(GsymLineOp::kSetFile));
      out.WriteUleb128(row.file);
    }
    EncodeStep(split, int64_t{row.line} - last.line, row.address - last.address,
               out);
    last = row;
  }
  out.Write(static_cast<uint8_t>(GsymLineOp::kEnd));
}

}  // namespace ksym
