// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/debian_package.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/ksym/elf/elf_builder.h"

namespace profd {
namespace {

class DebianPackageTest : public testing::Test {
 protected:
  DebianPackageTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   "ksym-debian-package") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    ksym::TestElf elf;
    elf.build_id = "\x01\x02\xab\xcd";
    std::ofstream(Path("server"))
        << ksym::ElfBuilder<ksym::Elf64Types>::Build(elf);
  }
  ~DebianPackageTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const {
    return (directory_ / name).string();
  }
  void Install(const std::string& package, const std::string& list) {
    std::ofstream(Path(package + ".list")) << list;
  }
  std::string Find(const char* build_id) const {
    return DebugPackageOf(Path("server"), build_id, directory_.string());
  }

  std::filesystem::path directory_;
};

// The package that has the very path, with the names that Debian gives to
// symbols, for the file of that build only.
TEST_F(DebianPackageTest, FindsThePackage) {
  EXPECT_EQ(Find("0102abcd"), "");
  Install("other", "/.\n" + Path("server") + ".conf\n");
  EXPECT_EQ(Find("0102abcd"), "");
  Install("db-15:amd64", "/.\n/usr\n" + Path("server") + "\n/end\n");
  EXPECT_EQ(Find("0102abcd"), "db-15-dbgsym");
  EXPECT_EQ(Find("0102abce"), "");
  EXPECT_EQ(Find(""), "");
  std::filesystem::rename(Path("db-15:amd64.list"), Path("libc6:amd64.list"));
  EXPECT_EQ(Find("0102abcd"), "libc6-dbg");
}

// Without lists there is no package.
TEST_F(DebianPackageTest, NeedsLists) {
  EXPECT_EQ(DebugPackageOf(Path("server"), "0102abcd", Path("nowhere")), "");
}

}  // namespace
}  // namespace profd
