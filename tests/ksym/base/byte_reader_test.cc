// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/byte_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ksym {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Integers are read in little-endian order, one after the other.
TEST(ByteReaderTest, ReadsLittleEndianIntegers) {
  const auto bytes = Bytes({1, 0x34, 0x12, 4, 3, 2, 1});
  ByteReader in(bytes);
  EXPECT_EQ(in.Read<uint8_t>(), 1u);
  EXPECT_EQ(in.Read<uint16_t>(), 0x1234u);
  EXPECT_EQ(in.Read<uint32_t>(), 0x01020304u);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.AtEnd());
}

// A read that needs one byte more than there is fails, and so does every one
// after it, even one that would fit.
TEST(ByteReaderTest, FailsForGoodPastTheEnd) {
  const auto bytes = Bytes({1, 2, 3});
  ByteReader exact(std::span<const std::byte>(bytes).first(2));
  EXPECT_EQ(exact.Read<uint16_t>(), 0x0201u);
  EXPECT_TRUE(exact.ok());
  ByteReader in(bytes);
  EXPECT_EQ(in.Read<uint32_t>(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.Read<uint8_t>(), 0u);
  EXPECT_FALSE(in.ok());
}

// A view of exactly the rest is given, of one byte more not.
TEST(ByteReaderTest, BoundsViews) {
  const auto bytes = Bytes({'a', 'b', 'c'});
  ByteReader whole(bytes);
  EXPECT_EQ(whole.ReadString(3), "abc");
  EXPECT_TRUE(whole.ok());
  ByteReader over(bytes);
  EXPECT_EQ(over.ReadString(4), "");
  EXPECT_FALSE(over.ok());
  ByteReader huge(bytes);
  EXPECT_TRUE(huge.ReadBytes(std::numeric_limits<size_t>::max()).empty());
  EXPECT_FALSE(huge.ok());
}

// The end itself can be sought, the byte behind it not.
TEST(ByteReaderTest, SeeksUpToTheEnd) {
  const auto bytes = Bytes({1, 2});
  ByteReader in(bytes);
  EXPECT_TRUE(in.Seek(2));
  EXPECT_TRUE(in.AtEnd());
  EXPECT_FALSE(in.Seek(3));
  EXPECT_FALSE(in.ok());
}

// Unsigned LEB128 holds every 64-bit value, and one bit more is refused.
TEST(ByteReaderTest, ReadsUleb128UpTo64Bits) {
  const auto small = Bytes({0xe5, 0x8e, 0x26});
  ByteReader in(small);
  EXPECT_EQ(in.ReadUleb128(), 624485u);
  const auto max =
      Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01});
  ByteReader largest(max);
  EXPECT_EQ(largest.ReadUleb128(), std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(largest.ok());
  const auto over =
      Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02});
  ByteReader too_large(over);
  EXPECT_EQ(too_large.ReadUleb128(), 0u);
  EXPECT_FALSE(too_large.ok());
}

// A LEB128 number without its last byte is no number.
TEST(ByteReaderTest, RefusesCutLeb128) {
  const auto bytes = Bytes({0x80, 0x80});
  ByteReader u(bytes);
  u.ReadUleb128();
  EXPECT_FALSE(u.ok());
  ByteReader s(bytes);
  s.ReadSleb128();
  EXPECT_FALSE(s.ok());
}

// Signed LEB128 extends the sign of its last byte.
TEST(ByteReaderTest, ReadsSleb128) {
  const auto bytes = Bytes({0x02, 0x7e, 0xff, 0x00, 0x80, 0x7f});
  ByteReader in(bytes);
  EXPECT_EQ(in.ReadSleb128(), 2);
  EXPECT_EQ(in.ReadSleb128(), -2);
  EXPECT_EQ(in.ReadSleb128(), 127);
  EXPECT_EQ(in.ReadSleb128(), -128);
  EXPECT_TRUE(in.ok() && in.AtEnd());
}

// Sums and products are given up to the largest 64-bit number only.
TEST(CheckedArithmeticTest, RefusesOverflow) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(kMax / 3, 3), kMax);
  EXPECT_EQ(CheckedMul(kMax / 3 + 1, 3), std::nullopt);
}

}  // namespace
}  // namespace ksym
