// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ksym {
namespace {

TEST(Utf8Test, KnowsWhatIsNoCharacter) {
  for (const uint32_t c : {0u, 0xd7ffu, 0xe000u, 0x10ffffu}) {
    EXPECT_TRUE(IsCharacter(c)) << c;
  }
  for (const uint32_t c : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu}) {
    EXPECT_FALSE(IsCharacter(c)) << c;
  }
}

// The first and the last character of each length.
TEST(Utf8Test, WritesCharactersOfEachLength) {
  const struct {
    uint32_t character;
    std::string text;
  } cases[] = {{0, std::string(1, '\0')},
               {0x7f, "\x7f"},
               {0x80, "\xc2\x80"},
               {0x7ff, "\xdf\xbf"},
               {0x800, "\xe0\xa0\x80"},
               {0xffff, "\xef\xbf\xbf"},
               {0x10000, "\xf0\x90\x80\x80"},
               {0x10ffff, "\xf4\x8f\xbf\xbf"}};
  for (const auto& [character, text] : cases) {
    std::string out = "a";
    AppendUtf8(character, out);
    EXPECT_EQ(out, "a" + text) << character;
  }
}

}  // namespace
}  // namespace ksym
