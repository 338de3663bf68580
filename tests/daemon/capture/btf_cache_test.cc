// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/btf_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/capture/minimal_btf.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

// The running kernel's own BTF is an object's, too: it has the structs that it
// wants. Its head is enough to tell objects apart.
class BtfCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    auto mapped = ksym::ReadFile("/sys/kernel/btf/vmlinux", size_t{64} << 20);
    if (!mapped) GTEST_SKIP() << "no kernel BTF";
    const WantedTypes wanted = {{"task_struct", {"pid", "mm"}}};
    auto minimal = MinimalKernelBtf(wanted);
    ASSERT_TRUE(minimal) << minimal.error().message();
    object_ = std::move(*minimal);
    std::string directory = testing::TempDir() + "btf-XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    directory_ = directory;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::vector<std::byte> Get(const std::string& build_id) {
    auto got = CachedKernelBtf(
        directory_, {.kernel_build_id = build_id, .object_btf = object_});
    EXPECT_TRUE(got) << got.error().message();
    return got ? std::move(*got) : std::vector<std::byte>();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      files.push_back(entry.path());
    }
    return files;
  }
  void ReplaceBytes(const std::string& path, size_t at, char byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  std::vector<std::byte> object_;
  std::string directory_;
};

TEST_F(BtfCacheTest, IsTheSameTheSecondTime) {
  const auto first = Get("aa");
  ASSERT_FALSE(first.empty());
  ASSERT_EQ(Files().size(), 1u);
  struct stat before = {};
  ASSERT_EQ(::stat(Files()[0].c_str(), &before), 0);
  EXPECT_EQ(Get("aa"), first);
  struct stat after = {};
  ASSERT_EQ(::stat(Files()[0].c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "written again";
}

TEST_F(BtfCacheTest, IsOfOneKernelAndOneObject) {
  Get("aa");
  Get("bb");
  EXPECT_EQ(Files().size(), 2u);
  object_ = MinimalKernelBtf({{"task_struct", {"pid", "tgid"}}}).value();
  Get("aa");
  EXPECT_EQ(Files().size(), 3u);
}

TEST_F(BtfCacheTest, IsMadeAnewWhereTheFileIsOfNoUse) {
  const auto first = Get("aa");
  for (const size_t at : {size_t{3}, size_t{40}}) {
    ReplaceBytes(Files()[0], at, 'X');
    EXPECT_EQ(Get("aa"), first);
    EXPECT_EQ(Get("aa"), first);
  }
  std::filesystem::resize_file(Files()[0], 5);
  EXPECT_EQ(Get("aa"), first);
  // One that is as large as no BTF of ours is not even read.
  std::filesystem::resize_file(Files()[0], size_t{1} << 30);
  EXPECT_EQ(Get("aa"), first);
}

TEST_F(BtfCacheTest, KeepsNothingWithoutAKernelOrADirectory) {
  const auto first = Get("");
  EXPECT_TRUE(Files().empty());
  const auto none =
      CachedKernelBtf("", {.kernel_build_id = "aa", .object_btf = object_});
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, first);
  const auto nowhere = CachedKernelBtf(
      "/proc/none/at/all", {.kernel_build_id = "aa", .object_btf = object_});
  ASSERT_TRUE(nowhere);
  EXPECT_EQ(*nowhere, first);
}

}  // namespace
}  // namespace profd
