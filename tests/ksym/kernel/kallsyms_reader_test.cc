// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kallsyms_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ksym/kernel/kernel_tables.h"

namespace ksym {
namespace {

using ksym_test::FdOf;

std::string Parse(std::string_view text) {
  KallsymsLine line;
  std::string_view reason;
  switch (ParseKallsymsLine(text, &line, &reason)) {
    case KallsymsLineKind::kUndefined:
      return "undefined";
    case KallsymsLineKind::kMalformed:
      return "malformed: " + std::string(reason);
    case KallsymsLineKind::kSymbol:
      break;
  }
  return std::to_string(line.address.value) + "|" + line.type + "|" +
         std::string(line.name) + "|" + std::string(line.module);
}

// Lines of kallsyms, System.map and nm are taken apart; the module column does
// not become part of the name.
TEST(ParseKallsymsLine, TakesLinesApart) {
  EXPECT_EQ(Parse("0000000000001000 T _start"), "4096|T|_start|");
  EXPECT_EQ(Parse("ffffffffffffffff t f\t[xfs]"),
            "18446744073709551615|t|f|xfs");
  EXPECT_EQ(Parse("10 t tramp\t[__builtin__ftrace]"),
            "16|t|tramp|__builtin__ftrace");
  EXPECT_EQ(Parse("08048000 T main(int, char**)"),
            "134512640|T|main(int, char**)|");
  EXPECT_EQ(Parse("1 t operator[](a b)]"), "1|t|operator[](a b)]|");
  EXPECT_EQ(Parse("1 T \xc3\xa9\x01"), "1|T|\xc3\xa9\x01|");
}

// An address of any length and case has the value that its digits say, and
// nothing else is one: 16 digits are read eight at a time.
TEST(ParseKallsymsLine, AddressesOfAnyDigits) {
  const std::string_view digits = "0123456789abcdefABCDEF";
  for (size_t at = 0; at < 16; ++at) {
    for (int byte = 1; byte < 256; ++byte) {
      std::string text = "0123456789abcdef T f";
      const char c = static_cast<char>(byte);
      if (c == ' ' || c == '\n') continue;
      text[at] = c;
      const bool is_digit = digits.find(c) != std::string_view::npos;
      const std::string parsed = Parse(text);
      if (is_digit) {
        EXPECT_EQ(parsed,
                  std::to_string(std::stoull(text, nullptr, 16)) + "|T|f|")
            << text;
      } else {
        EXPECT_EQ(parsed.substr(0, 9), "malformed") << text;
      }
    }
  }
}

// A symbol that nm lists without an address is no error.
TEST(ParseKallsymsLine, UndefinedSymbols) {
  EXPECT_EQ(Parse("                 U printf"), "undefined");
  EXPECT_EQ(Parse("                 w __cxa_finalize"), "undefined");
}

// What is not a symbol says why.
TEST(ParseKallsymsLine, MalformedLines) {
  EXPECT_EQ(Parse(""), "malformed: no hexadecimal address");
  EXPECT_EQ(Parse("g T f"), "malformed: no hexadecimal address");
  EXPECT_EQ(Parse("0x10 T f"), "malformed: no symbol type");
  EXPECT_EQ(Parse("00000000000001000 T f"), "malformed: address too long");
  EXPECT_EQ(Parse("10"), "malformed: no symbol type");
  EXPECT_EQ(Parse("10 T"), "malformed: no symbol type");
  EXPECT_EQ(Parse("10 TT f"), "malformed: no symbol type");
  EXPECT_EQ(Parse("10 T "), "malformed: no symbol name");
  EXPECT_EQ(Parse("10 T \t[m]"), "malformed: no symbol name");
}

// Malformed lines are counted, the first one is named, the rest is read; a
// last line without newline counts.
TEST(ReadKallsyms, CountsAndGoesOn) {
  KallsymsReport report;
  std::vector<std::string> names;
  const auto status =
      ReadKallsyms(FdOf("10 T a\nzap\n20 T b\n    U c\n\n0 A d").get(), report,
                   [&](const KallsymsLine& line) -> Status {
                     names.emplace_back(line.name);
                     return {};
                   });
  EXPECT_TRUE(status);
  EXPECT_THAT(names, testing::ElementsAre("a", "b", "d"));
  EXPECT_EQ(report.lines, 6u);
  EXPECT_EQ(report.symbols, 3u);
  EXPECT_EQ(report.undefined, 1u);
  EXPECT_EQ(report.malformed, 2u);
  EXPECT_EQ(report.zero_addresses, 1u);
  EXPECT_EQ(report.first_malformed_line, 2u);
  EXPECT_EQ(report.first_malformed_reason, "no hexadecimal address");
}

// Names longer than a block of the reader come whole.
TEST(ReadKallsyms, NamesOfAnyLength) {
  const std::string name(200'000, 'x');
  const auto map = LoadKallsyms(FdOf("1000 T " + name + "\n").get());
  ASSERT_TRUE(map) << map.error().message();
  SymbolNameBuffer buffer;
  const auto found = map->Find(Address{0x1000}, buffer);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, name);
}

// All addresses zero means that the kernel hides them; some may be zero.
TEST(LoadKallsyms, HiddenAddressesArePermission) {
  const auto hidden = LoadKallsyms(FdOf("0 T a\n0 t b\n").get());
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().code(), ErrorCode::kPermission);
  EXPECT_THAT(hidden.error().message(), testing::HasSubstr("CAP_SYSLOG"));
  EXPECT_TRUE(LoadKallsyms(FdOf("0 A a\n10 t b\n").get()));
}

// A file of another kind is refused with its first bad line; an empty listing
// is an empty map.
TEST(LoadKallsyms, OtherFilesAreRefused) {
  const auto other = LoadKallsyms(FdOf("#!/bin/sh\nexit 0\n").get());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(other.error().message(), testing::HasSubstr("line 1"));
  const auto empty = LoadKallsyms(FdOf("").get());
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->symbol_count(), 0u);
  SymbolNameBuffer buffer;
  EXPECT_FALSE(empty->Find(Address{0}, buffer));
}

// /proc/modules says where a module ends: else its last page ends it.
TEST(LoadKallsyms, ModuleListBoundsTheLastSymbol) {
  constexpr char kListing[] = "c0201000 t f\t[m]\n";
  SymbolNameBuffer buffer;
  const auto fd = FdOf(kListing);
  FdStream stream(fd.get());
  const auto bounded =
      LoadKallsyms(stream, "m 8192 0 - Live 0x00000000c0200100 (E)\n");
  ASSERT_TRUE(bounded);
  EXPECT_TRUE(bounded->Find(Address{0xc02020ff}, buffer));
  EXPECT_FALSE(bounded->Find(Address{0xc0202100}, buffer));
  const auto paged = LoadKallsyms(FdOf(kListing).get());
  ASSERT_TRUE(paged);
  EXPECT_TRUE(paged->Find(Address{0xc0201fff}, buffer));
  EXPECT_FALSE(paged->Find(Address{0xc0202000}, buffer));
}

// Since Linux 6.4 a module has several areas, and the list has the size of all:
// its text has what is left of that by the pages where its data is.
TEST(LoadKallsyms, TextOfScatteredModules) {
  constexpr std::string_view kListing =
      "c0200100 t f\t[m]\n"
      "c0800000 d data\t[m]\n"
      "c0800ff0 b more\t[m]\n"
      "c0801000 r table\t[m]\n"
      "c0900000 t bpf_prog_1\t[bpf]\n";
  constexpr std::string_view kModules = "m 20480 0 - Live 0x00000000c0200000\n";
  const auto end_of_f = [&](std::string_view modules,
                            std::string_view listing) {
    const auto fd = FdOf(std::string(listing).c_str());
    FdStream stream(fd.get());
    const auto map = LoadKallsyms(stream, modules);
    EXPECT_TRUE(map);
    SymbolNameBuffer buffer;
    uint64_t at = 0xc0200100;
    while (map && map->Find(Address{at}, buffer) &&
           map->Find(Address{at}, buffer)->name == "f") {
      at += 0x10;
    }
    return at;
  };
  EXPECT_EQ(end_of_f(kModules, kListing), 0xc0203000u);
  // It ends where another module's text begins, and where anything is listed.
  EXPECT_EQ(
      end_of_f(std::string(kModules) + "n 4096 0 - Live 0x00000000c0202000\n",
               std::string(kListing) + "c0202000 t g\t[n]\n"),
      0xc0202000u);
  EXPECT_EQ(end_of_f(kModules,
                     std::string(kListing) + "c0201800 t bpf_prog_2\t[bpf]\n"),
            0xc0201800u);
  // At least to its page's end, also where the list contradicts itself.
  EXPECT_EQ(end_of_f("m 4096 0 - Live 0x00000000c0200000\n", kListing),
            0xc0201000u);
  EXPECT_EQ(end_of_f("m 8192 0 - Live 0x00000000c0200000\n", kListing),
            0xc0201000u);
}

// What is listed like a module and is none has no size: its page ends it.
TEST(LoadKallsyms, ProgramsBesideScatteredModules) {
  constexpr char kListing[] =
      "c0200100 t f\t[m]\n"
      "c0800000 d data\t[m]\n"
      "c0900010 t bpf_prog_1\t[bpf]\n";
  const auto fd = FdOf(kListing);
  FdStream stream(fd.get());
  const auto map =
      LoadKallsyms(stream, "m 20480 0 - Live 0x00000000c0200000\n");
  ASSERT_TRUE(map);
  SymbolNameBuffer buffer;
  EXPECT_TRUE(map->Find(Address{0xc0900fff}, buffer));
  EXPECT_FALSE(map->Find(Address{0xc0901000}, buffer));
}

}  // namespace
}  // namespace ksym
