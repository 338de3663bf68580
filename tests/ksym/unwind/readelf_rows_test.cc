// SPDX-License-Identifier: Apache-2.0
// The rows of the machine's own files beside what readelf says about them.

#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/unwind/unwind_table.h"
#include "tests/ksym/sanitized.h"
#include "tests/ksym/unwind/table_of.h"

namespace ksym {
namespace {

// Bounds the time for the largest file; the others have less.
constexpr size_t kMaxRows = 100000;

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t start = line.find_first_not_of(" \n");
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    const auto word = line.substr(0, line.find_first_of(" \n"));
    // A register has its name behind it, "r9 (r9)", within one cell.
    if (!word.starts_with('(')) words.push_back(word);
    line.remove_prefix(word.size());
  }
}

uint64_t Hex(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

// "rsp+16" or "c-8": a base and bytes from it.
struct Place {
  std::string base;
  int offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};
Place ParsePlace(std::string_view cell) {
  const size_t sign = cell.find_first_of("+-");
  if (sign == std::string_view::npos) return {std::string(cell), 0};
  Place place = {std::string(cell.substr(0, sign)), 0};
  const auto digits = cell.substr(sign + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), place.offset);
  if (cell[sign] == '-') place.offset = -place.offset;
  return place;
}

// What readelf says about one range of addresses.
struct Expected {
  uint64_t start = 0;
  uint64_t end = 0;
  Place cfa;
  Place rbp = {"u", 0};
  Place rbx = {"u", 0};
  Place return_address;
};

// Reads the output of readelf --debug-dump=frames-interp, which has a table for
// each CIE and FDE:
//
//   0000006c 0000000000000020 00000070 FDE cie=00000000 pc=0270e0..027143
//      LOC           CFA      rbx   ra
//   00000000000270e0 rsp+8    u     c-8
class ReadelfOutput {
 public:
  explicit ReadelfOutput(const std::string& path) {
    const std::string command =
        "LC_ALL=C readelf --debug-dump=frames-interp '" + path +
        "' 2>/dev/null";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
        ::popen(command.c_str(), "r"), ::pclose);
    std::array<char, 4096> line = {};
    while (pipe && rows_.size() < kMaxRows &&
           ::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
      AddLine(line.data());
    }
    if (rows_.size() < kMaxRows) FinishEntry();
  }

  const std::vector<Expected>& rows() const { return rows_; }
  // Lines with more or fewer cells than their heading; their FDEs are left out.
  size_t shifted() const { return shifted_; }

 private:
  void AddLine(std::string_view line) {
    const auto words = Words(line);
    if (words.size() < 2) return;
    if (words.size() >= 4 && words[3] == "CIE") {
      FinishEntry();
      in_common_ = true;
      common_ = Hex(words[0]);
    } else if (words.size() >= 6 && words[3] == "FDE") {
      FinishEntry();
      in_common_ = false;
      StartFunction(words[4], words[5]);
    } else if (words[0] == "LOC") {
      columns_.assign(words.begin() + 1, words.end());
    } else if (words[0].size() == 16) {
      AddRow(words);
    }
  }

  void StartFunction(std::string_view cie, std::string_view range) {
    common_ = Hex(cie.substr(cie.find('=') + 1));
    range.remove_prefix(range.find('=') + 1);
    start_ = Hex(range.substr(0, range.find('.')));
    end_ = Hex(range.substr(range.rfind('.') + 1));
  }

  void AddRow(const std::vector<std::string_view>& words) {
    if (words.size() != columns_.size() + 1) {
      ++shifted_;
      is_shifted_ = true;
      return;
    }
    Expected row;
    row.start = Hex(words[0]);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Place place = ParsePlace(words[i + 1]);
      if (columns_[i] == "CFA") row.cfa = place;
      if (columns_[i] == "rbp") row.rbp = place;
      if (columns_[i] == "rbx") row.rbx = place;
      if (columns_[i] == "ra") row.return_address = place;
    }
    if (!entry_.empty() && entry_.back().start == row.start) entry_.pop_back();
    entry_.push_back(row);
  }

  void FinishEntry() {
    if (in_common_ && !entry_.empty()) {
      initial_.emplace_back(common_, entry_.back());
    } else if (!in_common_ && start_ < end_ && !is_shifted_) {
      if (entry_.empty()) entry_.push_back(InitialRow());
      for (size_t i = 0; i < entry_.size(); ++i) {
        entry_[i].end = i + 1 < entry_.size() ? entry_[i + 1].start : end_;
        if (entry_[i].start < entry_[i].end) rows_.push_back(entry_[i]);
      }
    }
    entry_.clear();
    is_shifted_ = false;
    in_common_ = true;
  }

  Expected InitialRow() const {
    Expected row;
    for (const auto& [offset, initial] : initial_) {
      if (offset == common_) row = initial;
    }
    row.start = start_;
    return row;
  }

  std::vector<Expected> rows_;
  std::vector<Expected> entry_;
  std::vector<std::pair<uint64_t, Expected>> initial_;
  std::vector<std::string> columns_;
  bool in_common_ = true;
  bool is_shifted_ = false;
  uint64_t common_ = 0;
  uint64_t start_ = 0;
  uint64_t end_ = 0;
  size_t shifted_ = 0;
};

// Where a row has RBX, as readelf would say it.
std::optional<Place> RbxOf(const UnwindRow& row) {
  const FramePointerKind kind = GetFramePointerKind(row);
  switch (kind) {
    case FramePointerKind::kSame:
    case FramePointerKind::kSaved:
      return Place{"u", 0};
    case FramePointerKind::kSavedExtraBelow:
      return Place{"c", (row.fp_offset - 1) * 8};
    case FramePointerKind::kSameExtraSaved:
      return Place{"c", row.fp_offset * 8};
    case FramePointerKind::kLost:
    case FramePointerKind::kSavedExtraLost:
    case FramePointerKind::kSameExtraLost:
    case FramePointerKind::kSavedAtFramePointer:
      return std::nullopt;
    default:
      return Place{"c", (row.fp_offset - (static_cast<int>(kind) - 6)) * 8};
  }
}

Place RbpOf(const UnwindRow& row) {
  switch (GetFramePointerKind(row)) {
    case FramePointerKind::kSame:
    case FramePointerKind::kSameExtraSaved:
    case FramePointerKind::kSameExtraLost:
      return {"u", 0};
    case FramePointerKind::kLost:
      return {"lost", 0};
    case FramePointerKind::kSavedAtFramePointer:
      return {"exp", 0};
    default:
      return {"c", row.fp_offset * 8};
  }
}

Place CfaOf(const UnwindRow& row) {
  constexpr std::array<const char*, 16> kRegisters = {
      "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  switch (GetCfaKind(row)) {
    case CfaKind::kStackPointer:
      return {"rsp", row.cfa_offset * 8};
    case CfaKind::kFramePointer:
      return {"rbp", row.cfa_offset * 8};
    case CfaKind::kExtra:
      return {"rbx", row.cfa_offset * 8};
    case CfaKind::kLeafRegister:
      return {kRegisters.at(static_cast<uint8_t>(CfaOffsetHigh(row))),
              CfaOffsetLow(row) * 8};
    case CfaKind::kReturnRegister:
      return {"rsp", CfaOffsetLow(row) * 8};
    default:
      return {"exp", 0};
  }
}

Place ReturnAddressOf(const UnwindRow& row) {
  if (GetCfaKind(row) != CfaKind::kReturnRegister) return {"c", -8};
  return {"r" + std::to_string(CfaOffsetHigh(row)), 0};
}

// Whether the row says what readelf says. kUnsupported is never wrong; the test
// bounds how many there are.
bool Agrees(const Expected& expected, const UnwindRow& row) {
  const CfaKind kind = GetCfaKind(row);
  if (kind == CfaKind::kUnsupported) return true;
  if (kind == CfaKind::kSignal) {
    return expected.return_address.base == "exp" && expected.cfa.base == "exp";
  }
  if (expected.return_address.base == "u") return kind == CfaKind::kEnd;
  if (expected.return_address != ReturnAddressOf(row)) return false;
  if (CfaOf(row) != expected.cfa || kind == CfaKind::kNoInfo) return false;
  if (GetFramePointerKind(row) == FramePointerKind::kLost)
    return expected.rbp.base != "u";
  const auto rbx = RbxOf(row);
  // The epilogue of a realigned frame, where the file is wrong about RBP.
  if (expected.rbp.base == "exp" && kind == CfaKind::kStackPointer) {
    return RbpOf(row).base == "u" && !rbx;
  }
  return RbpOf(row) == expected.rbp && (!rbx || *rbx == expected.rbx);
}

class ReadelfRowsTest : public ::testing::TestWithParam<const char*> {};

constexpr uint64_t kStartContextBytes = 26;

// Each row of each function is what readelf says, from its first to its last
// byte, and code that readelf does not list is unknown.
TEST_P(ReadelfRowsTest, Agree) {
  const std::string path = GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  if (IsTooLargeToCompare(path)) {
    GTEST_SKIP() << "takes too long with a sanitizer";
  }
  const auto table = TableOfFile(path);
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_EQ(table->counts.bad_fdes, 0u) << table->first_problem;

  const ReadelfOutput readelf(path);
  size_t wrong = 0;
  // What the C library says of its __start_context is wrong: that has no
  // caller.
  size_t corrected = 0;
  for (const Expected& row : readelf.rows()) {
    for (const uint64_t at : {row.start, row.end - 1}) {
      const UnwindRow* ours = FindUnwindRow(*table, at - table->base.value);
      if (ours != nullptr && Agrees(row, *ours)) continue;
      if (ours != nullptr && GetCfaKind(*ours) == CfaKind::kEnd &&
          row.end - row.start == kStartContextBytes && corrected < 2) {
        ++corrected;
        continue;
      }
      if (++wrong > 10) continue;
      ADD_FAILURE() << std::hex << at << ": CFA " << row.cfa.base << " "
                    << row.cfa.offset << ", rule "
                    << (ours == nullptr ? 0u : unsigned{ours->rule});
    }
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(readelf.rows().size(), 1000u);
  EXPECT_EQ(readelf.shifted(), 0u);
  EXPECT_LE(table->counts.unsupported_rows, readelf.rows().size() / 1000);
  RecordProperty("rows", static_cast<int>(readelf.rows().size()));
}

INSTANTIATE_TEST_SUITE_P(
    Files, ReadelfRowsTest,
    ::testing::Values("/lib/x86_64-linux-gnu/libc.so.6",
                      "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                      "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                      "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                      "/usr/bin/python3", "/usr/bin/node"));

}  // namespace
}  // namespace ksym
