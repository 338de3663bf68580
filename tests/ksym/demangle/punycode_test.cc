// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/punycode.h"

#include <gtest/gtest.h>

#include <string>

namespace ksym {
namespace {

// Those of Rust's reference, and of RFC 3492, section 7.1.
TEST(PunycodeTest, Decodes) {
  EXPECT_EQ(DecodePunycode("f_5gaa"), "føø");
  EXPECT_EQ(DecodePunycode("__ylb7e"), "α_ω");
  EXPECT_EQ(DecodePunycode("n84amf"), "铁锈");
  EXPECT_EQ(DecodePunycode("fq9h"), "🤦");
  EXPECT_EQ(DecodePunycode("2xaedc"), "ρυστ");
  EXPECT_EQ(DecodePunycode("gdel_5qa"), "gödel");
  EXPECT_EQ(DecodePunycode("egbpdaj6bu4bxfgehfvwxn"), "ليهمابتكلموشعربي؟");
  EXPECT_EQ(DecodePunycode("ihqwcrb4cv8a8dqg056pqjye"), "他们为什么不说中文");
  EXPECT_EQ(DecodePunycode("n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa"),
            "なぜみんな日本語を話してくれないのか");
}

TEST(PunycodeTest, RefusesWhatIsNone) {
  for (const char* none : {"", "a_", "_", "A", "a-b", "n84am", "9", "a_b_",
                           "99999999999999999999999999999999"}) {
    EXPECT_FALSE(DecodePunycode(none)) << none;
  }
  // One character too far, and a surrogate.
  EXPECT_TRUE(DecodePunycode("dn32g"));
  EXPECT_FALSE(DecodePunycode("en32g"));
  EXPECT_TRUE(DecodePunycode("hb9b"));
  EXPECT_FALSE(DecodePunycode("ib9b"));
}

TEST(PunycodeTest, BoundsTheLength) {
  const std::string most(kMaxPunycodeCharacters - 1, 'x');
  EXPECT_EQ(DecodePunycode(most + "_vk8b"), most + "é");
  EXPECT_FALSE(DecodePunycode(most + "x_wn8b"));
  EXPECT_FALSE(DecodePunycode(std::string(5000, 'a')));
}

}  // namespace
}  // namespace ksym
