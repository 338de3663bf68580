// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/answer_lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/file.h"

namespace ksym {
namespace {

// Names an address by itself, with as many bytes behind it as were asked for.
// Texts of even addresses are kept if those are to be.
class Echo : public AddressSource {
 public:
  enum class Kept : uint8_t { kNone, kEven };
  explicit Echo(size_t bytes, Kept kept = Kept::kNone, size_t depth = 1)
      : tail_(bytes, 'x'), kept_(kept), depth_(depth) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    answer = {};
    answer.is_kept = kept_ == Kept::kEven && address % 2 == 0;
    std::string& name = answer.is_kept ? names_.emplace_back() : name_;
    name = std::to_string(address) + tail_;
    answer.frames.assign(depth_,
                         {.function = name, .directory = {}, .file = {}});
    answer.symbol_start = address + 1;
    answer.module = answer.is_kept ? "kept" : "not kept";
  }

 private:
  std::string tail_;
  std::deque<std::string> names_;
  Kept kept_;
  size_t depth_;  // frames of an answer
  std::string name_;
};

std::string Answers(
    AddressSource& source, std::string_view lines,
    SymbolizeOptions::Style style = SymbolizeOptions::Style::kGnu) {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) return "no file";
  const int fd = ::fileno(file);
  const auto status = LineAnswerer(source, style, fd).Answer(lines);
  ::lseek(fd, 0, SEEK_SET);
  auto text = ReadAll(fd, size_t{1} << 28);
  std::fclose(file);
  return status && text ? *text : "failed";
}

// Answers come in the order of lines, whatever the order of addresses, and
// each line has one, also an equal one and one without an address.
TEST(LineAnswererTest, OrderOfLines) {
  Echo source(0);
  EXPECT_EQ(Answers(source, "0x20\n3\nnone\n20\n\n1"),
            "32\n??:0\n3\n??:0\n??\n??:0\n32\n??:0\n??\n??:0\n1\n??:0\n");
  EXPECT_EQ(Answers(source, ""), "");
}

// The same where some of the answers stay valid and are written later, with
// all that belongs to them.
TEST(LineAnswererTest, KeptAnswers) {
  Echo source(0, Echo::Kept::kEven);
  EXPECT_EQ(Answers(source, "4\n3\nnone\n2\n2\n1"),
            "4\n??:0\n3\n??:0\n??\n??:0\n2\n??:0\n2\n??:0\n1\n??:0\n");
  const std::string json =
      Answers(source, "4\n3\nx\n2\n", SymbolizeOptions::Style::kJson);
  std::string lines;
  for (const char* const line :
       {R"("0x4","ModuleName":"kept")", R"("0x3","ModuleName":"not kept")",
        R"("ModuleName":"")", R"("0x2","ModuleName":"kept")"}) {
    const size_t at = json.find(line);
    ASSERT_NE(at, std::string::npos) << line << " in " << json;
    lines += std::to_string(std::count(json.begin(), json.begin() + at, '\n'));
  }
  EXPECT_EQ(lines, "0123");
  EXPECT_NE(json.find(R"("StartAddress":"0x5")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("StartAddress":"0x3")"), std::string::npos) << json;
}

// Also over more lines than a batch has, and more bytes than may wait.
TEST(LineAnswererTest, BeyondABatch) {
  for (const auto& [bytes, kept] : {std::pair{size_t{0}, Echo::Kept::kNone},
                                    {size_t{8192}, Echo::Kept::kNone},
                                    {size_t{8192}, Echo::Kept::kEven}}) {
    Echo source(bytes, kept);
    std::string lines;
    std::string expected;
    for (uint64_t i = 0; i < 9000; ++i) {
      const uint64_t address = i * 7919 % 9001;
      char line[32];
      std::snprintf(line, sizeof(line), "%lx\n", address);
      lines += line;
      expected +=
          std::to_string(address) + std::string(bytes, 'x') + "\n??:0\n";
    }
    EXPECT_TRUE(Answers(source, lines) == expected) << bytes;
  }
}

// Names addresses that were announced, and only those of a batch.
class Announced : public Echo {
 public:
  Announced() : Echo(0) {}

  Status Prepare(std::span<const uint64_t> addresses) override {
    prepared_.assign(addresses.begin(), addresses.end());
    largest_ = std::max(largest_, prepared_.size());
    if (fails_at_ && std::ranges::count(prepared_, *fails_at_) > 0) {
      return Fail(ErrorCode::kLimit, "too much");
    }
    return {};
  }
  void Resolve(uint64_t address, AddressAnswer& answer) override {
    Echo::Resolve(address, answer);
    if (std::ranges::count(prepared_, address) == 0) ++unexpected_;
  }

  size_t largest() const { return largest_; }
  size_t unexpected() const { return unexpected_; }
  void FailAt(uint64_t address) { fails_at_ = address; }

 private:
  std::vector<uint64_t> prepared_;
  size_t largest_ = 0;
  size_t unexpected_ = 0;
  std::optional<uint64_t> fails_at_;
};

// A source is told the addresses of each batch before they are asked for, and
// where it fails no more is answered.
TEST(LineAnswererTest, SourcePrepares) {
  Announced source;
  EXPECT_EQ(Answers(source, "4\nnone\n3\n4\n"),
            "4\n??:0\n??\n??:0\n3\n??:0\n4\n??:0\n");
  EXPECT_EQ(source.largest(), 3);
  EXPECT_EQ(source.unexpected(), 0);
  source.FailAt(3);
  EXPECT_EQ(Answers(source, "4\n"), "4\n??:0\n");
  EXPECT_EQ(Answers(source, "4\n3\n"), "failed");
}

// And over more frames than may wait.
TEST(LineAnswererTest, ManyFrames) {
  constexpr size_t kDepth = 100;
  Echo source(0, Echo::Kept::kEven, kDepth);
  std::string lines;
  std::string expected;
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t address = i * 7919 % 3001;
    char line[32];
    std::snprintf(line, sizeof(line), "%lx\n", address);
    lines += line;
    for (size_t k = 0; k < kDepth; ++k) {
      expected += std::to_string(address) + "\n??:0\n";
    }
  }
  EXPECT_TRUE(Answers(source, lines) == expected);
}

}  // namespace
}  // namespace ksym
