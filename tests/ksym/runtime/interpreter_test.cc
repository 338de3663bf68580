// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/interpreter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

// The file, or nothing where there is none.
std::optional<ByteSource> Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return std::nullopt;
  return ByteSource::OfFile(std::move(fd),
                            static_cast<uint64_t>(status.st_size));
}

Result<std::optional<CpythonInterpreter>> FindIn(const ByteSource& source) {
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  return FindCpython(source, *image);
}

// Programs and libraries that hold an interpreter are known by what they
// export.
TEST(InterpreterTest, DebiansPython) {
  for (const char* path : {"/usr/bin/python3.11",
                           "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"}) {
    const auto source = Open(path);
    if (!source) GTEST_SKIP() << "no " << path;
    const auto found = FindIn(*source);
    ASSERT_TRUE(found) << found.error().message();
    ASSERT_TRUE(found->has_value()) << path;
    EXPECT_EQ((*found)->version.major, 3);
    EXPECT_EQ((*found)->version.minor, 11);
    EXPECT_EQ((*found)->layout, *CpythonLayoutOf((*found)->version));
    EXPECT_NE((*found)->code_type.value, 0u);
    EXPECT_NE((*found)->runtime.value, 0u);
    EXPECT_GT((*found)->runtime_bytes, 1000u);
    EXPECT_EQ((*found)->lists,
              (CpythonThreadLists{.newest = (*found)->runtime + 40,
                                  .interpreter_next = 0,
                                  .interpreter_threads = 16}));
  }
}

// Why an interpreter is refused; empty if it is not.
std::string RefusalOf(const std::string& name) {
  const auto source = Open(KSYM_FORGED + name + ".so");
  if (!source) return "no file";
  const auto found = FindIn(*source);
  return found ? "" : found.error().message();
}

// What is not known has one reason each, and nothing is taken from it.
TEST(InterpreterTest, Refusals) {
  EXPECT_EQ(RefusalOf("313"), "");
  EXPECT_EQ(RefusalOf("free_threaded"),
            "CPython without the global lock: its frames are not known");
  EXPECT_EQ(RefusalOf("liar"),
            "_PyRuntime does not begin with _Py_DebugOffsets");
  EXPECT_EQ(RefusalOf("musl"),
            "CPython with musl: where it has thread states is not known");
  EXPECT_EQ(RefusalOf("315"),
            "CPython whose thread states are not found: "
            "PyGILState_GetThisThreadState is not as known");
  EXPECT_EQ(RefusalOf("316"),
            "CPython 3.16.0: only the frames of 3.8 to 3.15 are known");
  EXPECT_EQ(RefusalOf("39"),
            "CPython 3.9: _PyEval_EvalFrameDefault keeps its frame in a way "
            "that is not known");
  EXPECT_EQ(RefusalOf("37"), "CPython before 3.8: its frames are not known");
}

TEST(InterpreterTest, OthersHaveNone) {
  const auto source = Open("/proc/self/exe");
  ASSERT_TRUE(source);
  const auto found = FindIn(*source);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->has_value());
}

// A version that is not known is refused with its number.
TEST(InterpreterTest, Versions) {
  EXPECT_TRUE(CpythonLayoutOf(CpythonVersion::FromHex(0x030b02f0)));
  EXPECT_TRUE(CpythonLayoutOf({.major = 3, .minor = 14, .micro = 0}));
  EXPECT_TRUE(CpythonLayoutOf({.major = 3, .minor = 8, .micro = 20}));
  EXPECT_TRUE(CpythonLayoutOf({.major = 3, .minor = 15, .micro = 0}));
  for (const uint64_t hex : {0x03070000u, 0x031000a1u, 0x040b0000u}) {
    EXPECT_FALSE(CpythonLayoutOf(CpythonVersion::FromHex(hex)));
  }
  const auto refused = CpythonLayoutOf(CpythonVersion::FromHex(0x031001f0));
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message().find("3.16.1"), std::string::npos);
}

}  // namespace
}  // namespace ksym
