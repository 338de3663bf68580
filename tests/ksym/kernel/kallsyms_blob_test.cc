// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kallsyms_blob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ksym/kernel/kallsyms_blob_writer.h"

namespace ksym {
namespace {

using testing::ElementsAre;

constexpr Address kStart = {0x1000};
constexpr Address kEnd = {0x1300};

std::vector<std::byte> Write(std::vector<BlobSymbol> symbols) {
  auto bytes = WriteKallsymsBlob(std::move(symbols));
  if (!bytes) ADD_FAILURE() << bytes.error().message();
  return bytes.value_or(std::vector<std::byte>());
}

std::vector<std::byte> ThreeSymbols() {
  return Write({{Address{0x1100}, 'T', "do_fork"},
                {Address{0x1200}, 'T', "cpu_startup_entry"},
                {Address{0x1000}, 'T', "_start"}});
}

std::string Find(const KallsymsBlob& blob, uint64_t address) {
  SymbolNameBuffer buffer;
  const auto symbol = blob.LookupAddress(Address{address}, buffer);
  if (!symbol) return "none";
  return std::string(symbol->name) + "+" + std::to_string(symbol->offset) +
         "/" + std::to_string(symbol->size);
}

// The format's three-symbol example, to the byte. Tokens by count times
// length: "cpu_startu" (10), "do_fork" (7), "_start" (6).
TEST(KallsymsBlob, ThreeSymbolExample) {
  constexpr uint8_t kGolden[] = {
      3,    0,    0,   0,    0,   0,    0,   0,    // num_syms
      0x00, 0x10, 0,   0,    0,   0,    0,   0,    // addresses
      0x00, 0x11, 0,   0,    0,   0,    0,   0,    //
      0x00, 0x12, 0,   0,    0,   0,    0,   0,    //
      0,    0,    0,   0,    6,   0,    0,   0,    // offsets
      12,   0,    0,   0,                          //
      0,    0,    0,   0,    2,   0,    0,   0,    // seqs
      1,    0,    0,   0,                          //
      25,   0,    0,   0,    0,   0,    0,   0,    // names_len
      'T',  3,    0,   0xff, 2,   0xff,            // _start
      'T',  3,    0,   0xff, 1,   0xff,            // do_fork
      'T',  10,   0,   0xff, 0,   0xff,            // cpu_startup_entry
      'p',  '_',  'e', 'n',  't', 'r',  'y',       //
      0,    0,    0,   0,    0,   0,    0,         // to 8
      23,   0,    0,   0,    0,   0,    0,   0,    // token_table_len
      'c',  'p',  'u', '_',  's', 't',  'a', 'r',  //
      't',  'u',  'd', 'o',  '_', 'f',  'o', 'r',  //
      'k',  '_',  's', 't',  'a', 'r',  't', 0,    // to 8
      3,    0,    0,   0,    0,   0,    0,   0,    // token_index_len
      0,    0,    0,   0,    10,  0,    0,   0,    // token_index
      17,   0,    0,   0,
  };
  const auto blob = ThreeSymbols();
  ASSERT_EQ(blob.size(), sizeof kGolden);
  for (size_t i = 0; i < blob.size(); ++i) {
    EXPECT_EQ(blob[i], std::byte{kGolden[i]}) << "byte " << i;
  }
}

// Lookups are half-open and end with the text.
TEST(KallsymsBlob, LookupsAreBounded) {
  const auto bytes = ThreeSymbols();
  const auto blob = KallsymsBlob::FromBlob(bytes, kStart, kEnd);
  ASSERT_TRUE(blob) << blob.error().message();
  EXPECT_EQ(Find(*blob, 0xfff), "none");
  EXPECT_EQ(Find(*blob, 0x1000), "_start+0/256");
  EXPECT_EQ(Find(*blob, 0x10ff), "_start+255/256");
  EXPECT_EQ(Find(*blob, 0x1100), "do_fork+0/256");
  EXPECT_EQ(Find(*blob, 0x12ff), "cpu_startup_entry+255/256");
  EXPECT_EQ(Find(*blob, 0x1300), "none");
  const auto narrow =
      KallsymsBlob::FromBlob(bytes, Address{0x1180}, Address{0x1280});
  EXPECT_EQ(Find(*narrow, 0x1100), "none");
  EXPECT_EQ(Find(*narrow, 0x1180), "do_fork+128/256");
  EXPECT_EQ(Find(*narrow, 0x127f), "cpu_startup_entry+127/128");
  EXPECT_EQ(Find(*narrow, 0x1280), "none");
}

// Names before the first, after the last and between others are not found,
// and those that are there are.
TEST(KallsymsBlob, NameLookups) {
  const auto bytes = Write({{Address{0x1000}, 'T', "bb"},
                            {Address{0x1010}, 't', "dup"},
                            {Address{0x1020}, 't', "dup"},
                            {Address{0x1030}, 'T', "ff"}});
  const auto blob = KallsymsBlob::FromBlob(bytes, kStart, kEnd);
  ASSERT_TRUE(blob);
  for (const char* absent : {"", "a", "b", "bbb", "cc", "du", "dup2", "zz"}) {
    EXPECT_FALSE(blob->LookupName(absent)) << absent;
    EXPECT_TRUE(blob->LookupNames(absent).empty());
  }
  EXPECT_EQ(blob->LookupName("bb"), Address{0x1000});
  EXPECT_EQ(blob->LookupName("ff"), Address{0x1030});
  EXPECT_EQ(blob->LookupName("dup"), Address{0x1010});
  EXPECT_THAT(blob->LookupNames("dup"),
              ElementsAre(Address{0x1010}, Address{0x1020}));
}

// The first alias answers for the first byte and for every other.
TEST(KallsymsBlob, AliasesAnswerAlike) {
  const auto bytes = Write({{Address{0x1000}, 't', "local"},
                            {Address{0x1000}, 'T', "global"},
                            {Address{0x1010}, 'T', "next"}});
  const auto blob = KallsymsBlob::FromBlob(bytes, kStart, kEnd);
  ASSERT_TRUE(blob);
  EXPECT_EQ(Find(*blob, 0x1000), "global+0/16");
  EXPECT_EQ(Find(*blob, 0x100f), "global+15/16");
}

std::vector<BlobSymbol> ManyPrefixes() {
  // More than 512 tokens worth having, each of ten characters.
  std::vector<BlobSymbol> symbols;
  for (uint64_t i = 0; i < 1200; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "prefix%04u_x",
                  static_cast<unsigned>(i / 2));
    symbols.push_back(
        {Address{0x1000 + i * 16}, 't', name + std::string(1 + i % 2, 'z')});
  }
  return symbols;
}

// Names come back with all 511 tokens in use, and no token code is written
// that reads as another one: the long form never ends in FF FF.
TEST(KallsymsBlob, TokenIdsAreNotAmbiguous) {
  const auto symbols = ManyPrefixes();
  const auto bytes = Write(symbols);
  const auto blob = KallsymsBlob::FromBlob(bytes, kStart, Address{0x100000});
  ASSERT_TRUE(blob);
  EXPECT_EQ(blob->token_count(), 511u);
  for (const BlobSymbol& symbol : symbols) {
    SymbolNameBuffer buffer;
    const auto found = blob->LookupAddress(symbol.address, buffer);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, symbol.name);
  }
}

// Names that are hard to write come back: not ASCII at every place a prefix
// may end, spaces, longer than 255 bytes, up to the largest payload.
TEST(KallsymsBlob, HardNames) {
  std::vector<BlobSymbol> symbols;
  symbols.reserve(70);
  for (uint64_t i = 0; i < 70; ++i) {
    symbols.push_back({Address{0x1000 + i * 16}, 't',
                       std::string(i, 'a') + "\xc3\xa9\xe2\x82\xac b"});
  }
  symbols.push_back({Address{0x2000}, 't', std::string(300, 'x')});
  symbols.push_back({Address{0x2010}, 't', std::string(65535, 'y')});
  const auto bytes = Write(symbols);
  const auto blob = KallsymsBlob::FromBlob(bytes, kStart, Address{0x3000});
  ASSERT_TRUE(blob);
  for (const BlobSymbol& symbol : symbols) {
    SymbolNameBuffer buffer;
    EXPECT_EQ(blob->LookupAddress(symbol.address, buffer)->name, symbol.name);
    EXPECT_EQ(blob->LookupName(symbol.name), symbol.address);
  }
}

// What the format cannot hold is an error that names the symbol.
TEST(KallsymsBlob, WriterRefusesWhatDoesNotFit) {
  std::string name(70000, 'n');
  name[5] = 'N';
  const auto longest = WriteKallsymsBlob({{Address{1}, 'T', name}});
  ASSERT_FALSE(longest || longest.error().code() != ErrorCode::kLimit);
  EXPECT_THAT(longest.error().message(), testing::HasSubstr("nnnnnN"));
  const auto marked = WriteKallsymsBlob({{Address{1}, 'T', "\xff\x01\xff"}});
  ASSERT_FALSE(marked);
  EXPECT_EQ(marked.error().code(), ErrorCode::kUnsupported);
}

// The view reads at any alignment without copying.
TEST(KallsymsBlob, AnyAlignment) {
  const auto bytes = ThreeSymbols();
  for (size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> moved(bytes.size() + shift);
    std::ranges::copy(bytes, moved.begin() + static_cast<ptrdiff_t>(shift));
    const auto blob =
        KallsymsBlob::FromBlob(std::span(moved).subspan(shift), kStart, kEnd);
    ASSERT_TRUE(blob) << blob.error().message();
    EXPECT_EQ(Find(*blob, 0x1101), "do_fork+1/256");
    EXPECT_EQ(blob->bytes().data(), moved.data() + shift);
  }
}

// A dump is a listing.
TEST(KallsymsBlob, Dump) {
  const auto bytes = ThreeSymbols();
  std::string text;
  KallsymsBlob::FromBlob(bytes, kStart, kEnd)
      ->DumpAllSymbols([&](std::string_view line) { text += line; });
  EXPECT_EQ(text,
            "0000000000001000 T _start\n0000000000001100 T do_fork\n"
            "0000000000001200 T cpu_startup_entry\n");
}

// Each count, offset, length and id is refused when it points outside.
TEST(KallsymsBlob, EveryFieldIsChecked) {
  const auto good = ThreeSymbols();
  struct Damage {
    size_t offset;
    uint8_t value;
    const char* what;
  };
  for (const Damage& damage : {
           Damage{0, 4, "one symbol more than there are"},
           Damage{7, 0xff, "a count whose size overflows"},
           Damage{6, 0x20, "a count whose size wraps to a small one"},
           Damage{8 + 1, 0x13, "addresses out of order"},
           Damage{32, 0x18, "a record that starts too late"},
           Damage{35, 0xff, "an offset outside of the names"},
           Damage{44, 3, "a name order entry that is no symbol"},
           Damage{56, 24, "a record that ends after the names"},
           Damage{63, 0xff, "a names length that overflows"},
           Damage{65, 200, "a payload that ends after the names"},
           Damage{68, 3, "a token id that is not there"},
           Damage{69, 0, "a token code without its end"},
           Damage{96, 255, "a token table longer than the blob"},
           Damage{128, 4, "a token index longer than the blob"},
           Damage{140, 18, "token starts out of order"},
           Damage{144, 24, "a token that starts after the table"},
       }) {
    auto bytes = good;
    bytes[damage.offset] = std::byte{damage.value};
    const auto blob = KallsymsBlob::FromBlob(bytes, kStart, kEnd);
    ASSERT_FALSE(blob) << damage.what;
    EXPECT_EQ(blob.error().code(), ErrorCode::kCorrupt);
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(
        KallsymsBlob::FromBlob(std::span(good).first(size), kStart, kEnd));
  }
}

// A blob without symbols is a blob.
TEST(KallsymsBlob, NoSymbols) {
  const auto bytes = Write({});
  const auto blob = KallsymsBlob::FromBlob(bytes, kStart, kEnd);
  ASSERT_TRUE(blob) << blob.error().message();
  EXPECT_EQ(Find(*blob, 0x1000), "none");
  EXPECT_FALSE(blob->LookupName("a"));
}

}  // namespace
}  // namespace ksym
