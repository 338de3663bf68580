// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/text_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/format.h"
#include "daemon/output/output_buffer.h"
#include "daemon/output/safe_name.h"
#include "daemon/output/text_pieces.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

// Texts have few different bytes, so that many texts are equal or begin alike.
std::vector<std::string> RandomTexts(std::mt19937& random, size_t count,
                                     size_t max_bytes) {
  constexpr std::string_view kBytes("\0a\x7f\xff", 4);
  std::vector<std::string> texts(count);
  for (std::string& text : texts) {
    for (size_t i = random() % (max_bytes + 1); i > 0; --i) {
      text += kBytes[random() % kBytes.size()];
    }
  }
  return texts;
}

// Texts come in the order in which comparing them one by one would put them:
// shorter and longer than a word, with bytes 0, few and many.
TEST(TextOrderTest, IsTheOrderOfTheBytes) {
  std::mt19937 random(1);
  for (const size_t count : {0, 1, 2, 12, 13, 1000, 20000}) {
    for (const size_t max_bytes : {0, 3, 8, 9, 40}) {
      std::vector<std::string> texts = RandomTexts(random, count, max_bytes);
      std::vector<std::string_view> views(texts.begin(), texts.end());
      std::vector<std::string_view> ordered;
      for (const uint32_t index : OrderOfTexts(views)) {
        ordered.push_back(views[index]);
      }
      std::ranges::sort(views);
      EXPECT_EQ(ordered, views) << count << " of " << max_bytes;
    }
  }
}

// Long texts that are equal but for their ends need no room per byte.
TEST(TextOrderTest, LongTexts) {
  std::vector<std::string> texts(50, std::string(100'000, 'x'));
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i] += static_cast<char>('A' + (i * 7) % 50);
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const auto order = OrderOfTexts(views);
  EXPECT_TRUE(std::ranges::is_sorted(
      order, {}, [&](uint32_t index) { return texts[index].back(); }));
}

// A key gives back the ranks that went in, and a list that ends sooner is
// smaller than one that goes on, whatever the bits per rank.
TEST(TextPiecesTest, KeysHoldRanks) {
  for (unsigned bits = 1; bits <= 32; ++bits) {
    const auto most = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
    for (size_t size = 1; size < 20; ++size) {
      std::string key;
      KeyWriter writer(bits, key);
      for (size_t i = 0; i < size; ++i) writer.Add(i % 2 == 0 ? most : 1);
      writer.Finish();
      KeyReader reader(bits, key);
      for (size_t i = 0; i < size; ++i) {
        ASSERT_EQ(reader.Next(), i % 2 == 0 ? most : 1u) << bits;
      }
      EXPECT_EQ(reader.Next(), 0u) << bits;
    }
    std::string first;
    std::string second;
    KeyWriter short_key(bits, first);
    KeyWriter long_key(bits, second);
    for (KeyWriter* key : {&short_key, &long_key}) key->Add(1);
    long_key.Add(1);
    short_key.Finish();
    long_key.Finish();
    EXPECT_LT(first, second) << bits;
  }
}

// Two keys share as many ranks as their lists do, and reading can begin at any
// of them.
TEST(TextPiecesTest, CountsSharedRanks) {
  for (unsigned bits = 1; bits <= 32; ++bits) {
    const auto most = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
    for (size_t shared = 0; shared < 40; ++shared) {
      std::string keys[2];
      for (const size_t which : {0, 1}) {
        KeyWriter writer(bits, keys[which]);
        for (size_t i = 0; i < shared; ++i) writer.Add(most);
        // The lists part here, or one ends.
        if (bits > 1) writer.Add(which == 0 ? 1 : most);
        if (which == 0) writer.Add(most);
        writer.Finish();
      }
      EXPECT_EQ(CountSharedRanks(bits, keys[0], keys[1]), shared) << bits;
      KeyReader reader(bits, keys[0], shared);
      EXPECT_EQ(reader.Next(), 1u) << bits;
    }
  }
}

// Folded lines of random stacks are what they are by their definition: texts
// made whole, merged, and sorted with their counts. The names begin with each
// other, and with what stands behind them in a line.
TEST(FoldedTest, EqualsLinesSortedAsTexts) {
  constexpr std::string_view kNames[] = {
      "f",           "f !g",  "f g",       "f(int)", "f(int) const",
      "f.a",         "f 7 !", "f;g",       "-",      "",
      "[truncated]", "f\x01", "operator ", "f_[k]"};
  constexpr size_t kNameCount = std::size(kNames);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    TestProfile p;
    std::map<std::string, uint64_t> counts;
    for (size_t i = 0; i < 40; ++i) {
      const std::string_view comm = kNames[random() % 3];
      std::vector<FrameId> frames;
      std::string line;
      AppendFoldedName(comm, line);
      for (size_t depth = random() % 5; depth > 0; --depth) {
        const std::string_view name = kNames[random() % kNameCount];
        frames.insert(frames.begin(), p.User(name));
        line += ';';
        AppendFoldedName(name, line);
      }
      const uint64_t count = 1 + random() % 20;
      counts[line] += count;
      p.Add({.comm = std::string(comm), .user = frames, .count = count});
    }
    std::vector<std::string> lines;
    lines.reserve(counts.size());
    for (const auto& [line, count] : counts) {
      lines.push_back(line + ' ' + std::to_string(count));
    }
    std::ranges::sort(lines);
    std::string expected;
    for (const std::string& line : lines) expected += line + '\n';
    ASSERT_EQ(Render(std::move(p).Finish(), OutputFormat::kFolded, {}),
              expected)
        << round;
  }
}

// Pieces reach the sink in order, and none after the first failure.
TEST(OutputBufferTest, StopsAtTheFirstFailure) {
  std::string got;
  size_t calls = 0;
  OutputBuffer out([&](std::string_view piece) {
    got += piece;
    return ++calls == 2 ? ksym::Status(ksym::FailErrno(ENOSPC, "disk"))
                        : ksym::Status();
  });
  const std::string piece(300'000, 'a');
  for (int i = 0; i < 4; ++i) {
    out.text() += piece;
    out.PassOn();
    EXPECT_TRUE(out.text().empty());
  }
  out.Write(piece);
  const ksym::Status status = out.Finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().sys_errno(), ENOSPC);
  EXPECT_EQ(calls, 2u);
  EXPECT_EQ(got, piece + piece);
}

}  // namespace
}  // namespace profd
