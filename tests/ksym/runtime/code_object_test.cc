// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/code_object.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace ksym {
namespace {

constexpr uint64_t kCode = 0x1000;
constexpr uint64_t kName = 0x2000;
constexpr uint64_t kFile = 0x3000;
constexpr uint64_t kLineTable = 0x4000;

// A process with one code object.
class CodeObjectTest : public testing::Test {
 protected:
  CodeObjectTest() {
    Put(kCode, 192);
    Set(kCode + layout_.code_name, kName);
    Set(kCode + layout_.code_file, kFile);
    Set(kCode + layout_.code_lines, kLineTable);
    Set(kCode + layout_.code_first_line, uint32_t{42});
    PutText(kName, "Handler.get", 1, true);
    PutText(kFile, "/srv/app.py", 1, true);
    Put(kLineTable, 36);
    Set(kLineTable + CpythonOffsets::kSize, uint64_t{4});
  }

  std::string& Put(uint64_t address, size_t size) {
    std::string& bytes = memory_[address];
    bytes.assign(size, '\0');
    return bytes;
  }
  template <typename T>
  void Set(uint64_t address, T value) {
    auto at = std::prev(memory_.upper_bound(address));
    std::memcpy(at->second.data() + (address - at->first), &value,
                sizeof(value));
  }
  // A str object whose characters have `kind` bytes each.
  void PutText(uint64_t address, const std::string& bytes, uint32_t kind,
               bool is_ascii) {
    const size_t data = is_ascii ? layout_.text_ascii : layout_.text_other;
    Put(address, data + bytes.size()).replace(data, bytes.size(), bytes);
    Set(address + CpythonOffsets::kSize, uint64_t{bytes.size() / kind});
    Set(address + CpythonOffsets::kTextState,
        kind << 2 | 0x20 | (is_ascii ? 0x40u : 0u));
  }
  Result<CpythonCode> Read() {
    PieceMemory memory;
    for (const auto& [address, bytes] : memory_) {
      memory.Add({address}, std::as_bytes(std::span(bytes)));
    }
    return ReadCpythonCode(memory, layout_, {kCode});
  }

  const CpythonLayout layout_ =
      *CpythonLayoutOf({.major = 3, .minor = 11, .micro = 2});
  std::map<uint64_t, std::string> memory_;
};

TEST_F(CodeObjectTest, Reads) {
  const auto code = Read();
  ASSERT_TRUE(code) << code.error().message();
  EXPECT_EQ(code->name, "Handler.get");
  EXPECT_EQ(code->file, "/srv/app.py");
  EXPECT_EQ(code->first_line, 42u);
  EXPECT_EQ(code->line_table.size(), 4u);
}

// Names of each kind of str become UTF-8, and what is no character becomes the
// replacement for one.
TEST_F(CodeObjectTest, KindsOfText) {
  PutText(kName,
          "gr\xf6\xdf"
          "e",
          1, false);
  EXPECT_EQ(Read()->name, "größe");
  PutText(kName, std::string("\x3b\x04\x00\xd8", 4), 2, false);
  EXPECT_EQ(Read()->name, "л\xef\xbf\xbd");
  PutText(kName, std::string("\x0d\xf4\x01\0\xff\xff\xff\xff", 8), 4, false);
  EXPECT_EQ(Read()->name, "\xf0\x9f\x90\x8d\xef\xbf\xbd");
}

// A text of which only a part is there, or that is too long, is cut, and says
// so.
TEST_F(CodeObjectTest, CutText) {
  Set(kName + CpythonOffsets::kSize, uint64_t{1} << 40);
  EXPECT_EQ(Read()->name, "Handler.get…");
  PutText(kName, std::string(kMaxCpythonText + 1, 'x'), 1, true);
  EXPECT_EQ(Read()->name, std::string(kMaxCpythonText, 'x') + "…");
  PutText(kName, std::string(kMaxCpythonText, 'x'), 1, true);
  EXPECT_EQ(Read()->name, std::string(kMaxCpythonText, 'x'));
}

// What cannot be read, or is no str, is an error; lines that cannot be read are
// none.
TEST_F(CodeObjectTest, Unreadable) {
  Set(kLineTable + CpythonOffsets::kSize, uint64_t{1} << 62);
  EXPECT_EQ(Read()->line_table, "");
  Set(kName + CpythonOffsets::kTextState, uint32_t{3 << 2 | 0x20});
  EXPECT_EQ(Read().error().code(), ErrorCode::kNotFound);
  Set(kName + CpythonOffsets::kTextState, uint32_t{1 << 2});
  EXPECT_FALSE(Read());
  memory_.erase(kName);
  EXPECT_FALSE(Read());
  memory_.erase(kCode);
  EXPECT_FALSE(Read());
}

}  // namespace
}  // namespace ksym
