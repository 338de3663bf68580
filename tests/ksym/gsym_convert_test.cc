// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym_convert.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "ksym/base/file.h"

namespace ksym {
namespace {

// A program that was cut off anywhere is refused, in each version of DWARF, so
// a file made of it never answers wrongly.
TEST(GsymConvert, EveryTruncationIsAnError) {
  const std::filesystem::path directory =
      std::filesystem::path(KSYM_TEST_DATA_DIR).parent_path() /
      "fuzz/corpus/dwarf_to_gsym_fuzz";
  int programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto bytes = ReadFile(entry.path().string(), size_t{1} << 20);
    ASSERT_TRUE(bytes);
    const auto convert = [&](size_t size) {
      return ConvertElfToGsym(ByteSource::OfMemory(bytes->substr(0, size)), {},
                              {});
    };
    const auto whole = convert(bytes->size());
    ASSERT_TRUE(whole) << entry.path();
    EXPECT_TRUE(whole->has_dwarf);
    ++programs;
    for (size_t size = 0; size < bytes->size(); ++size) {
      EXPECT_FALSE(convert(size)) << entry.path() << " at " << size;
    }
  }
  EXPECT_GE(programs, 8);
}

}  // namespace
}  // namespace ksym
