// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/gsym_texts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ksym/gsym/gsym_index.h"
#include "tests/ksym/gsym/gsym_samples.h"

namespace ksym {
namespace {

// As many functions as names are given, of one byte each from 0x1000 on, each
// in a file of its own.
std::vector<std::byte> FileOf(const std::vector<std::string>& names) {
  FunctionBatch batch;
  batch.files = {{}};
  for (uint32_t i = 0; i < names.size(); ++i) {
    const uint64_t start = 0x1000 + uint64_t{i};
    batch.files.push_back({"/src/" + names[i], "a.c"});
    batch.lines.push_back({start, i + 1, 7});
    batch.functions.push_back({names[i], {start, start + 1}, i, 1, 0, 0});
  }
  return WriteGsym(batch);
}

GsymFrameRef RefAt(const GsymFile& file, uint64_t address) {
  GsymIndex index(file);
  GsymAnswer answer;
  const auto found = LookupGsymRefs(file, {address}, index, answer);
  EXPECT_TRUE(found && *found);
  return answer.refs.empty() ? GsymFrameRef() : answer.refs.back();
}

// Every name of a file is found again while the table grows, once made: the
// same name has the same bytes, however often it is asked for.
TEST(GsymTexts, EachNameOnce) {
  std::vector<std::string> names;
  for (int i = 1000; i < 4000; ++i) {
    names.push_back("_Z5n" + std::to_string(i) + "v");
  }
  const auto bytes = FileOf(names);
  const auto file = GsymFile::Parse(bytes);
  ASSERT_TRUE(file);
  GsymTexts texts(*file, GsymTexts::Names::kDemangled);
  std::vector<const char*> first;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto ref = RefAt(*file, 0x1000 + i);
    first.push_back(texts.NameAt(ref.function).text.data());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto ref = RefAt(*file, 0x1000 + i);
    const GsymTexts::Name& name = texts.NameAt(ref.function);
    EXPECT_EQ(name.text, "n" + std::to_string(1000 + i) + "()");
    EXPECT_EQ(name.text.data(), first[i]);
    EXPECT_TRUE(name.is_plain);
    EXPECT_EQ(texts.PathAt(ref.file).directory, "/src/" + names[i]);
  }
}

// A name stays as it is stored if it is not mangled or not to be demangled; no
// file is an empty path; and a text is plain only if it can be written as it
// is.
TEST(GsymTexts, AsStored) {
  const auto bytes = FileOf({"_Z4mainv", "plain", "caf\xc3\xa9", "es\x1b[0m"});
  const auto file = GsymFile::Parse(bytes);
  ASSERT_TRUE(file);
  GsymTexts stored(*file, GsymTexts::Names::kAsStored);
  GsymTexts demangled(*file, GsymTexts::Names::kDemangled);
  std::vector<GsymFrameRef> refs;
  for (uint64_t i = 0; i < 4; ++i) refs.push_back(RefAt(*file, 0x1000 + i));
  EXPECT_EQ(stored.NameAt(refs[0].function).text, "_Z4mainv");
  EXPECT_EQ(demangled.NameAt(refs[0].function).text, "main()");
  EXPECT_EQ(demangled.NameAt(refs[1].function).text, "plain");
  EXPECT_TRUE(stored.NameAt(refs[1].function).is_plain);
  EXPECT_TRUE(stored.PathAt(refs[1].file).is_plain);
  for (const size_t i : {size_t{2}, size_t{3}}) {
    EXPECT_FALSE(stored.NameAt(refs[i].function).is_plain);
    EXPECT_FALSE(stored.PathAt(refs[i].file).is_plain);
  }
  EXPECT_TRUE(stored.PathAt(GsymFrameRef::kNoFile).base.empty());
  EXPECT_TRUE(stored.PathAt(GsymFrameRef::kNoFile).is_plain);
}

}  // namespace
}  // namespace ksym
