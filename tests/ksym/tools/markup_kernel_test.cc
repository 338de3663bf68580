// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/markup_kernel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "ksym/elf/build_id_note.h"

namespace ksym {
namespace {

using namespace std::string_literals;

std::string Note(const std::string& name, char type, const std::string& bytes) {
  const auto size = [](const std::string& text) {
    return std::string(1, static_cast<char>(text.size())) + "\0\0\0"s;
  };
  return size(name) + size(bytes) + std::string(1, type) + "\0\0\0"s + name +
         std::string((4 - name.size() % 4) % 4, '\0') + bytes +
         std::string((4 - bytes.size() % 4) % 4, '\0');
}

TEST(FindBuildIdNoteTest, FindsItAmongOthers) {
  // Only GNU's note of type 3, whatever stands before it.
  const std::string other = Note("Linux\0"s, 3, "abcde");
  const std::string wrong_type = Note("GNU\0"s, 1, "abcd");
  const std::string right = Note("GNU\0"s, 3, "\xab\x01\xff"s);
  EXPECT_EQ(FindBuildIdNote(other + wrong_type + right), "ab01ff");
  EXPECT_EQ(FindBuildIdNote(other + wrong_type), "");
  EXPECT_EQ(FindBuildIdNote(""), "");
}

TEST(FindBuildIdNoteTest, TruncatedNotesAreNone) {
  // No length of a hostile note reads past its bytes.
  const std::string right = Note("GNU\0"s, 3, "\xab\x01\xff\x02"s);
  for (size_t size = 0; size < right.size(); ++size) {
    EXPECT_EQ(FindBuildIdNote(right.substr(0, size)), "") << size;
  }
  EXPECT_EQ(FindBuildIdNote(std::string(64, '\xff')), "");
}

class MarkupKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/markup_kernel_test";
    std::filesystem::create_directories(directory_ + "/module/ext4/notes");
    Write("/kallsyms",
          "ffffffff81000000 T _text\nffffffff81000100 T schedule\n"
          "ffffffff81000200 D jiffies\nffffffff81001000 T _etext\n"
          "ffffffffc0001000 t ext4_read\t[ext4]\n");
    Write("/notes", Note("GNU\0"s, 3, "kernel"));
    Write("/modules", "ext4 4096 0 - Live 0xffffffffc0001000\n");
    Write("/module/ext4/notes/.note.gnu.build-id", Note("GNU\0"s, 3, "module"));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + name, std::ios::binary) << text;
  }
  RunningKernelPaths Paths() const {
    return {directory_ + "/kallsyms", directory_ + "/notes",
            directory_ + "/modules", directory_ + "/module"};
  }

  std::string directory_;
};

constexpr const char* kKernelId = "6b65726e656c";
constexpr const char* kModuleId = "6d6f64756c65";

TEST_F(MarkupKernelTest, TheRunningKernelIsKnownByItsBuildId) {
  // Neither another build-id nor another place is the running kernel.
  MarkupKernel kernel("", Paths());
  const MarkupModule image = {0, "any name", kKernelId};
  const MarkupModule other = {1, "kernel", "ab"};
  const MarkupModule ext4 = {2, "fs/ext4.ko.xz", kModuleId};
  const MarkupModule wrong = {3, "xfs", kModuleId};
  const MarkupModule path = {4, "..", kModuleId};
  const auto is_running = [&kernel](const MarkupModule& module,
                                    uint64_t start) {
    kernel.Reset();
    return kernel.IsRunning({{start}, 0x1000, &module, "rx", {}});
  };
  EXPECT_TRUE(is_running(image, 0xffffffff81000000));
  EXPECT_FALSE(is_running(other, 0xffffffff81000000));
  EXPECT_TRUE(is_running(ext4, 0xffffffffc0001000));
  EXPECT_FALSE(is_running(ext4, 0xffffffffc0002000));
  EXPECT_FALSE(is_running(wrong, 0xffffffffc0001000));
  EXPECT_FALSE(is_running(path, 0xffffffffc0001000));
}

TEST_F(MarkupKernelTest, AnotherBootHasNoNames) {
  // The image must begin where the symbols say it does.
  MarkupKernel kernel("", Paths());
  const MarkupModule image = {0, "kernel", kKernelId};
  constexpr auto kCode = MarkupKernel::Kind::kCode;
  const MarkupMmap here = {{0xffffffff81000000}, 0x1000, &image, "rx", {}};
  const auto found = kernel.Find(here, {0xffffffff81000102}, kCode);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->name, "schedule");
  EXPECT_EQ((*found)->offset, 2u);
  const MarkupMmap moved = {{0xffffffff80f00000}, 0x200000, &image, "rx", {}};
  EXPECT_FALSE(kernel.Find(moved, {0xffffffff81000102}, kCode));
}

TEST_F(MarkupKernelTest, AModuleHasOnlyItsOwnSymbols) {
  // Another module's at the same place is no answer.
  MarkupKernel kernel(directory_ + "/kallsyms");
  const MarkupModule ext4 = {0, "ext4", "ab"};
  const MarkupModule xfs = {1, "xfs", "cd"};
  constexpr auto kCode = MarkupKernel::Kind::kCode;
  const Address at{0xffffffffc0001000};
  const auto found = kernel.Find({at, 0x1000, &ext4, "rx", {}}, at, kCode);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->name, "ext4_read");
  EXPECT_FALSE(kernel.Find({at, 0x1000, &xfs, "rx", {}}, at, kCode));
}

}  // namespace
}  // namespace ksym
