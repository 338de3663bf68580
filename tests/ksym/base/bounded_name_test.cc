// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/bounded_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ksym/base/printable.h"

namespace ksym {
namespace {

std::string Name(const std::string& name) {
  std::string room;
  return std::string(BoundName(name, room));
}

std::string Path(const std::string& path) {
  std::string room;
  return std::string(BoundPath(path, room));
}

// A name of the longest length stays, and a longer one has that length.
TEST(BoundedNameTest, CutsLongNames) {
  const std::string most(kMaxShownBytes, 'n');
  EXPECT_EQ(Name(most), most);
  EXPECT_EQ(Path(most), most);
  const std::string cut = Name(most + "n");
  EXPECT_EQ(cut.size(), kMaxShownBytes);
  EXPECT_THAT(cut, testing::MatchesRegex("n+\xe2\x80\xa6#[0-9a-f]{16}"));
  EXPECT_EQ(Name(""), "");
}

// Names that differ in one byte anywhere, or in their length, stay different.
TEST(BoundedNameTest, KeepsNamesApart) {
  const std::string whole(3000, 'n');
  std::set<std::string> names = {Name(whole)};
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string other = whole;
    other[at] = 'm';
    names.insert(Name(other));
  }
  names.insert(Name(whole + "n"));
  EXPECT_EQ(names.size(), whole.size() + 2);
  EXPECT_EQ(Name(whole), Name(whole));
}

// No character is cut in two, wherever it lies and however long it is.
TEST(BoundedNameTest, CutsBetweenCharacters) {
  for (const std::string character :
       {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x94\xa5"}) {
    for (size_t before = 0; before < 4; ++before) {
      std::string text(before, 'x');
      while (text.size() < 5000) text += character;
      for (const std::string& cut : {Name(text), Path(text)}) {
        EXPECT_LE(cut.size(), kMaxShownBytes);
        EXPECT_GE(cut.size(), kMaxShownBytes - 3);
        std::string printable;
        AppendPrintable(cut, printable);
        EXPECT_EQ(cut, printable);
      }
    }
  }
  // What is no text is cut all the same.
  EXPECT_LE(Name(std::string(5000, '\x80')).size(), kMaxShownBytes);
}

// The end of a path stays, from the beginning of a directory on.
TEST(BoundedNameTest, KeepsTheEndOfPaths) {
  std::string path;
  while (path.size() < 3900) path += "/directory" + std::to_string(path.size());
  const std::string cut = Path(path + "/libx.so");
  EXPECT_LE(cut.size(), kMaxShownBytes);
  EXPECT_GE(cut.size(), kMaxShownBytes - 12);
  EXPECT_THAT(cut, testing::MatchesRegex(
                       "/\xe2\x80\xa6#[0-9a-f]{16}/directory.*/libx\\.so"));
  EXPECT_NE(cut, Path("/x" + path + "/libx.so"));
}

}  // namespace
}  // namespace ksym
