// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/debian_package.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "ksym/base/file.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
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

// Lists are read in blocks, whose ends are anywhere.
TEST_F(DebianPackageTest, FindsThePathAnywhere) {
  const std::string line = Path("server") + "\n";
  for (const size_t before :
       {size_t{0}, (size_t{64} << 10) - line.size() - 1,
        (size_t{64} << 10) - line.size(), (size_t{64} << 10) - line.size() + 1,
        (size_t{64} << 10) - 1, size_t{64} << 10, size_t{200'000}}) {
    std::string list;
    while (list.size() + 100 < before) list += "/usr/share/doc/x\n";
    if (list.size() != before) {
      list += std::string(before - list.size() - 1, '/') + '\n';
    }
    ASSERT_EQ(list.size(), before);
    Install("db-15", list + line);
    EXPECT_EQ(Find("0102abcd"), "db-15-dbgsym") << before;
    Install("db-15", list + "/usr" + line);  // the path of another file
    EXPECT_EQ(Find("0102abcd"), "") << before;
  }
  // Lines that are longer than a block, and end as the path does.
  for (const size_t before : {70'000, 1 << 16, 2 << 16}) {
    Install("db-15", std::string(before, 'x') + line);
    EXPECT_EQ(Find("0102abcd"), "") << before;
  }
  Install("db-15", std::string(70'000, 'x') + '\n' + line);
  EXPECT_EQ(Find("0102abcd"), "db-15-dbgsym");
}

// dpkg has the path that was packed, from before /lib became /usr/lib.
TEST_F(DebianPackageTest, FindsThePathOfBefore) {
  const std::string libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
  if (!std::filesystem::exists(libc)) GTEST_SKIP() << "there is no " << libc;
  const auto source = ksym::ByteSource::OfFile(
      ksym::OpenForRead(libc).value(), std::filesystem::file_size(libc));
  const auto image = ksym::ElfImage::Parse(source);
  const std::string build_id = ksym::ToHex(image.value().build_id());
  const auto find = [&] {
    return DebugPackageOf(libc, build_id, directory_.string());
  };
  Install("libc6:amd64", "/x" + libc.substr(4) + "\n/lib\n");
  EXPECT_EQ(find(), "");
  Install("libc6:amd64", "/lib\n" + libc.substr(4) + "\n/etc\n");
  EXPECT_EQ(find(), "libc6-dbg");
  Install("libc6:amd64", "/lib\n" + libc + "\n/etc\n");
  EXPECT_EQ(find(), "libc6-dbg");
}

// Without lists there is no package.
TEST_F(DebianPackageTest, NeedsLists) {
  EXPECT_EQ(DebugPackageOf(Path("server"), "0102abcd", Path("nowhere")), "");
}

}  // namespace
}  // namespace profd
