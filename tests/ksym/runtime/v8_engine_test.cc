// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <string>

#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

Result<const V8Layout*> FindIn(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return Fail(ErrorCode::kNotFound, "no file");
  }
  const auto source =
      ByteSource::OfFile(std::move(fd), static_cast<uint64_t>(status.st_size));
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  return FindV8(source, *image);
}

std::string V8RefusalOf(const std::string& name) {
  const auto found = FindIn(KSYM_FORGED + ("v8_" + name) + ".so");
  return found ? "" : found.error().message();
}

// A version is told from the others by one number, and their rows differ.
TEST(V8EngineTest, VersionsDiffer) {
  std::set<uint16_t> types;
  for (const V8Layout& layout : KnownV8Layouts()) {
    EXPECT_TRUE(types.insert(layout.shared_function_info).second);
  }
}

TEST(V8EngineTest, KnownByWhatItTells) {
  const auto found = FindIn(std::string(KSYM_FORGED) + "v8_113.so");
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_NE(*found, nullptr);
  EXPECT_EQ((*found)->version, "11.3");
}

TEST(V8EngineTest, Refusals) {
  EXPECT_EQ(V8RefusalOf("unknown"),
            "V8 of a version that is not known: SHARED_FUNCTION_INFO_TYPE is "
            "999");
  EXPECT_EQ(V8RefusalOf("liar"),
            "V8 that is not as version 11.3: v8dbg_type_Script__SCRIPT_TYPE is "
            "168");
}

// A file that is none has no V8, and that is no error.
TEST(V8EngineTest, OtherFiles) {
  const auto found = FindIn("/proc/self/exe");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(*found, nullptr);
}

TEST(V8EngineTest, InstalledNode) {
  const auto found = FindIn("/usr/bin/node");
  if (!found && found.error().code() == ErrorCode::kNotFound) {
    GTEST_SKIP() << "no /usr/bin/node";
  }
  ASSERT_TRUE(found) << found.error().message();
  if (*found == nullptr) GTEST_SKIP() << "its V8 is in a library";
  EXPECT_FALSE((*found)->version.empty());
}

}  // namespace
}  // namespace ksym
