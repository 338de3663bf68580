// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/ksym/markup/fake_symbolizer.h"

namespace ksym {
namespace {

TEST(MarkupWriterTest, ElementsAreAsSpecified) {
  // Addresses have an even number of digits.
  const MarkupModule module = {1, "libc.so", "83238ab56ba10497"};
  const MarkupMmap mmap = {{0x7acba69d5000}, 0x5a000, &module, "rx", {0x1000}};
  std::string out;
  AppendMarkupReset(out);
  AppendMarkupModule(module, out);
  AppendMarkupMmap(mmap, out);
  AppendMarkupFrame(12, {0x123}, MarkupCode::kReturnAddress, out);
  AppendMarkupCode({0}, MarkupCode::kPrecise, out);
  AppendMarkupData({UINT64_MAX}, out);
  AppendMarkupSymbol("_Z1fv", out);
  AppendMarkupDumpFile("sancov", "sancov.8675", out);
  EXPECT_EQ(out,
            "{{{reset}}}{{{module:1:libc.so:elf:83238ab56ba10497}}}"
            "{{{mmap:0x7acba69d5000:0x5a000:load:1:rx:0x1000}}}"
            "{{{bt:12:0x0123:ra}}}{{{pc:0x00:pc}}}"
            "{{{data:0xffffffffffffffff}}}{{{symbol:_Z1fv}}}"
            "{{{dumpfile:sancov:sancov.8675}}}");
}

TEST(MarkupWriterTest, NamesCannotEndTheirField) {
  // Whatever a file is called, the element stays one element on one line.
  std::string out;
  AppendMarkupModule({0, "a:b}}}\n{{{reset}}}\033\xff", "ab"}, out);
  EXPECT_EQ(out, "{{{module:0:a_b___?{{{reset___??:elf:ab}}}");
}

TEST(MarkupWriterTest, TheFilterReadsWhatIsWritten) {
  // Writer and filter agree, down to the address before a return address.
  const MarkupModule module = {3, "app", "ab"};
  const MarkupMmap mmap = {{0x5000}, 0x1000, &module, "rx", {0x1000}};
  std::string log;
  AppendMarkupModule(module, log);
  AppendMarkupMmap(mmap, log += '\n');
  AppendMarkupFrame(1, {0x5012}, MarkupCode::kReturnAddress, log += '\n');
  FakeMarkupSymbolizer symbolizer;
  MarkupStrings output;
  MarkupFilter filter({}, symbolizer, output);
  filter.Push(log);
  filter.Finish();
  EXPECT_EQ(output.log,
            "[[[ELF module #0x3 \"app\"; BuildID=ab [0x5000-0x5fff](rx)]]]\n"
            "    #1    0x0000000000005011 function f.c:12:7 (app+0x1011)\n");
  EXPECT_EQ(output.report, "");
}

}  // namespace
}  // namespace ksym
