// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/terminal_screen.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

using Style = ScreenLine::Style;

// An update has the lines that differ and no others; the same lines need none.
TEST(TerminalScreenTest, UpdatesWhatDiffers) {
  const std::vector<ScreenLine> before = {{.text = "a"}, {.text = "b"}};
  EXPECT_EQ(ScreenUpdate(before, before), "");
  EXPECT_EQ(ScreenUpdate(before, {{.text = "a"}, {.text = "c"}}),
            "\x1b[2;1H\x1b[0m\x1b[2Kc\x1b[0m");
  EXPECT_EQ(ScreenUpdate(before, {{.text = "a", .style = Style::kHeader},
                                  {.text = "b"}}),
            "\x1b[1;1H\x1b[0m\x1b[2K\x1b[7ma\x1b[0m");
}

// Lines that are no longer there are erased; a screen of which nothing is known
// is erased as a whole.
TEST(TerminalScreenTest, ErasesWhatIsGone) {
  EXPECT_EQ(ScreenUpdate({{.text = "a"}, {.text = "b"}}, {{.text = "a"}}),
            "\x1b[2;1H\x1b[0m\x1b[2K\x1b[0m");
  EXPECT_EQ(ScreenUpdate({}, {{.text = "a"}}),
            "\x1b[0m\x1b[2J\x1b[1;1H\x1b[0m\x1b[2Ka\x1b[0m");
}

}  // namespace
}  // namespace profd
