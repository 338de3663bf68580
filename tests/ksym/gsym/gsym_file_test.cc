// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ksym/gsym/gsym_decode.h"
#include "ksym/gsym/gsym_lookup.h"
#include "tests/ksym/gsym/gsym_samples.h"

namespace ksym {
namespace {

using testing::HasSubstr;

constexpr GsymWriterOptions kVersion2 = {.version = GsymVersion::k2};

std::vector<GsymWriterOptions> AllForms() {
  std::vector<GsymWriterOptions> forms;
  for (const auto version : {GsymVersion::k1, GsymVersion::k2}) {
    for (const auto order : {std::endian::little, std::endian::big}) {
      for (const uint8_t size : std::initializer_list<uint8_t>{0, 2, 4, 8}) {
        forms.push_back(
            {.version = version, .byte_order = order, .address_bytes = size});
      }
    }
  }
  return forms;
}

std::vector<std::byte> Bytes(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  bytes.reserve(values.size());
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Version 1 written by hand after its description: "f" at 0x1000 with 16
// bytes, lines a/b:7 and, 4 bytes on, a/b:9.
std::vector<std::byte> Golden() {
  return Bytes({
      0x4d, 0x59, 0x53, 0x47, 1,
      0,    1,    2,  // magic, version, sizes
      0x00, 0x10, 0,    0,    0,
      0,    0,    0,  // base address
      1,    0,    0,    0,    0x4c,
      0,    0,    0,    7,    0,
      0,    0,  // count, strings
      0xaa, 0xbb, 0,    0,    0,
      0,    0,    0,    0,    0,  // uuid
      0,    0,    0,    0,    0,
      0,    0,    0,    0,    0,  //
      0,    0,    0,    0,        // 30: address, padding
      0x54, 0,    0,    0,        // 34: information
      2,    0,    0,    0,    0,
      0,    0,    0,    0,    0,
      0,    0,  // 38: files
      1,    0,    0,    0,    3,
      0,    0,    0,  //
      0,    'a',  0,    'b',  0,
      'f',  0,    0,  // 4c: strings, padding
      0x10, 0,    0,    0,    5,
      0,    0,    0,  // 54: size, name
      1,    0,    0,    0,    6,
      0,    0,    0,  // line table
      0x7f, 2,    7,    5,    4 + 3 + 4 * 4,
      0,  //
      0,    0,    0,    0,    0,
      0,    0,    0,  // end
  });
}

// The description's bytes mean what it says: every field of version 1.
TEST(GsymFile, GoldenBytes) {
  const auto bytes = Golden();
  const auto file = GsymFile::Parse(bytes);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->version(), GsymVersion::k1);
  EXPECT_EQ(file->uuid(), "\xaa\xbb");
  EXPECT_EQ(file->function_count(), 1u);
  EXPECT_EQ(file->file_count(), 2u);
  EXPECT_EQ(LookupText(bytes, 0x1000), "f+0 a/b:7");
  EXPECT_EQ(LookupText(bytes, 0x1003), "f+3 a/b:7");
  EXPECT_EQ(LookupText(bytes, 0x1004), "f+4 a/b:9");
  EXPECT_EQ(LookupText(bytes, 0x100f), "f+15 a/b:9");
  EXPECT_EQ(LookupText(bytes, 0x1010), "none");
  EXPECT_EQ(LookupText(bytes, 0xfff), "none");
}

// Each address has its function, line and whole inline chain, in both versions,
// both byte orders and all widths of addresses.
TEST(GsymFile, LookupsInAllForms) {
  const std::string in_once =
      "once+3 /src/include/util.h:5; twice+7 /src/include/util.h:4; "
      "main+23 /src/main.c:11";
  for (const GsymWriterOptions& form : AllForms()) {
    const auto bytes = WriteGsym(SampleBatch(), form);
    ASSERT_FALSE(bytes.empty());
    EXPECT_EQ(LookupText(bytes, 0xfff), "none");
    EXPECT_EQ(LookupText(bytes, 0x1000), "main+0 /src/main.c:10");
    EXPECT_EQ(LookupText(bytes, 0x100f), "main+15 /src/main.c:10");
    EXPECT_EQ(LookupText(bytes, 0x1010),
              "twice+0 /src/include/util.h:3; main+16 /src/main.c:11");
    EXPECT_EQ(LookupText(bytes, 0x1017), in_once);
    EXPECT_EQ(LookupText(bytes, 0x1018),
              "twice+8 /src/include/util.h:3; main+24 /src/main.c:11");
    EXPECT_EQ(LookupText(bytes, 0x1037),
              "twice+39 /src/include/util.h:3; main+55 /src/main.c:11");
    EXPECT_EQ(LookupText(bytes, 0x1038), "main+56 /src/main.c:12");
    EXPECT_EQ(LookupText(bytes, 0x104f), "main+79 /src/main.c:12");
    EXPECT_EQ(LookupText(bytes, 0x1050), "none");
    EXPECT_EQ(LookupText(bytes, 0x2003), "tail+3");
    EXPECT_EQ(LookupText(bytes, 0x2004), "tail+4 /src/main.c:20");
    EXPECT_EQ(LookupText(bytes, 0x2010), "none");
    EXPECT_EQ(LookupText(bytes, ~uint64_t{0}), "none");
  }
}

// A call whose place is not known is a call all the same: the line is the
// callee's, and its caller has none.
TEST(GsymFile, CallsWithoutAPlace) {
  FunctionBatch batch = SampleBatch();
  for (InlinedCall& call : batch.inlines) call.call_file = call.call_line = 0;
  for (const GsymWriterOptions& form : AllForms()) {
    const auto bytes = WriteGsym(batch, form);
    EXPECT_EQ(LookupText(bytes, 0x100f), "main+15 /src/main.c:10");
    EXPECT_EQ(LookupText(bytes, 0x1017),
              "once+3 /src/include/util.h:5; twice+7; main+23");
  }
}

// A file that was cut off anywhere is refused, so it never answers wrongly.
TEST(GsymFile, EveryTruncationIsAnError) {
  for (const auto& bytes : {WriteGsym(SampleBatch()),
                            WriteGsym(SampleBatch(), kVersion2), Golden()}) {
    ASSERT_TRUE(GsymFile::Parse(bytes));
    for (size_t size = 0; size < bytes.size(); ++size) {
      // An exact copy, so that a sanitizer sees a read behind its end.
      const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + size);
      EXPECT_FALSE(GsymFile::Parse(cut)) << size;
    }
  }
}

// Whatever one byte becomes, a lookup ends, within the bytes.
TEST(GsymFile, AnyByteMayBeWrong) {
  for (const auto version : {GsymVersion::k1, GsymVersion::k2}) {
    const auto good = WriteGsym(SampleBatch(), {.version = version});
    for (size_t i = 0; i < good.size(); ++i) {
      for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        auto bytes = good;
        bytes[i] = static_cast<std::byte>(value);
        for (uint64_t a = 0x1000; a < 0x2010; a += 13) LookupText(bytes, a);
        const auto file = GsymFile::Parse(bytes);
        if (!file) continue;
        for (uint32_t f = 0; f < file->function_count() && f < 4; ++f) {
          static_cast<void>(DecodeGsymFunction(*file, f));
        }
      }
    }
  }
}

// What is not GSYM, and versions to come, are told from broken files.
TEST(GsymFile, RefusalsSayWhy) {
  const auto code = [](std::vector<std::byte> bytes) {
    const auto file = GsymFile::Parse(bytes);
    return file ? ErrorCode::kInvalid : file.error().code();
  };
  EXPECT_EQ(code({}), ErrorCode::kUnsupported);
  EXPECT_EQ(code(Bytes({0x7f, 'E', 'L', 'F'})), ErrorCode::kUnsupported);
  auto bytes = Golden();
  bytes[4] = std::byte{3};
  EXPECT_EQ(code(bytes), ErrorCode::kUnsupported);
  EXPECT_THAT(LookupText(bytes, 0), HasSubstr("version 3"));
  bytes = Golden();
  bytes[6] = std::byte{3};
  EXPECT_EQ(code(bytes), ErrorCode::kCorrupt);
  EXPECT_THAT(LookupText(bytes, 0), HasSubstr("addresses of 3 bytes"));
}

// Information of a type that is not known is passed over by a lookup and
// counted by a decoder.
TEST(GsymFile, UnknownInformation) {
  auto bytes = Golden();
  bytes[0x5c] = std::byte{77};  // the line table's type
  EXPECT_EQ(LookupText(bytes, 0x1004), "f+4");
  const auto file = GsymFile::Parse(bytes);
  ASSERT_TRUE(file);
  const auto function = DecodeGsymFunction(*file, 0);
  ASSERT_TRUE(function);
  EXPECT_EQ(function->unknown_infos, 1u);
}

// A function of size 0 reaches up to the next one's start.
TEST(GsymFile, UnknownSize) {
  auto bytes = Golden();
  bytes[0x54] = std::byte{0};
  EXPECT_EQ(LookupText(bytes, 0x123456), "f+1188950 a/b:9");
}

// The last of several rows at one address counts, there and behind it, as for
// llvm-gsymutil, whose files have such rows.
TEST(GsymFile, RowsAtOneAddress) {
  auto bytes = Golden();
  ASSERT_EQ(bytes[0x68], std::byte{4 + 3 + 4 * 4});
  bytes[0x68] = std::byte{4 + 3};  // two lines on, at the same address
  EXPECT_EQ(LookupText(bytes, 0x1000), "f+0 a/b:9");
  EXPECT_EQ(LookupText(bytes, 0x1003), "f+3 a/b:9");
}

}  // namespace
}  // namespace ksym
