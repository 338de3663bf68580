// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ksym/kernel/kernel_symbol_source.h"

namespace profd {
namespace {

ksym::UniqueFd FdOf(const std::string& text) {
  ksym::UniqueFd fd(::memfd_create("read_ahead", MFD_CLOEXEC));
  EXPECT_TRUE(ksym::WriteAll(fd.get(), text));
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

// The bytes of a file of any size, whatever the reader asks for at once, and
// then its end, again and again.
TEST(ReadAhead, GivesTheFilesBytes) {
  constexpr size_t kChunk = size_t{256} << 10;
  for (const size_t size :
       {size_t{0}, size_t{1}, kChunk - 1, kChunk, kChunk + 1, 5 * kChunk}) {
    std::string text;
    while (text.size() < size) text += std::to_string(text.size()) + "\n";
    text.resize(size);
    const auto fd = FdOf(text);
    for (const size_t at_once : {size_t{1000}, kChunk, 2 * kChunk}) {
      const auto source = ReadAhead::Start(fd.get());
      std::string got;
      std::vector<char> block(at_once);
      EXPECT_EQ(source->Read({}).value(), 0u);
      while (const size_t n = source->Read(block).value()) {
        got.append(block.data(), n);
      }
      EXPECT_TRUE(got == text) << size << " bytes, " << at_once << " at once";
      EXPECT_EQ(source->Read(block).value(), 0u);
      ::lseek(fd.get(), 0, SEEK_SET);
    }
  }
}

// An error comes with its text after the bytes that were read before it, and
// stays.
TEST(ReadAhead, HandsErrorsOn) {
  const ksym::UniqueFd directory(::open("/", O_RDONLY | O_CLOEXEC));
  const auto source = ReadAhead::Start(directory.get());
  std::array<char, 16> block;
  for (int i = 0; i < 2; ++i) {
    const auto read = source->Read(block);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message().find("read: Is a directory"),
              std::string::npos)
        << read.error().message();
  }
  const auto symbols =
      ksym::OpenKernelSymbols("/proc/self", {.make_stream = ReadAhead::Start});
  ASSERT_FALSE(symbols);
  EXPECT_NE(symbols.error().message().find("/proc/self"), std::string::npos);
}

// Stopping early waits for no more than the read under way.
TEST(ReadAhead, StopsBeforeTheEnd) {
  const ksym::UniqueFd endless(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  std::array<char, 16> block;
  {
    const auto unread = ReadAhead::Start(endless.get());
  }
  const auto source = ReadAhead::Start(endless.get());
  EXPECT_EQ(source->Read(block).value(), block.size());
}

// Signals that the reader does not take.
std::string BlockedSignals(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) return line.substr(line.find('\t') + 1);
  }
  return {};
}

// Threads of this process that take no signals.
int DeafThreads() {
  constexpr uint64_t kKillAndStop = 1ull << (9 - 1) | 1ull << (19 - 1);
  constexpr uint64_t kLibrarysOwn = 3ull << 31;
  int deaf = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    uint64_t blocked = 0;
    std::istringstream(BlockedSignals(task.path())) >> std::hex >> blocked;
    deaf += (blocked | kKillAndStop | kLibrarysOwn) == UINT64_MAX ? 1 : 0;
  }
  return deaf;
}

// Its thread takes no signal; the thread that started it takes what it did.
TEST(ReadAhead, LeavesSignalsAlone) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const ksym::UniqueFd in(ends[0]);
  ksym::UniqueFd out(ends[1]);
  const std::filesystem::path self =
      "/proc/self/task/" + std::to_string(::gettid());
  const std::string before = BlockedSignals(self);
  // The sanitizers have threads of their own.
  const int deaf_before = DeafThreads();
  const auto source = ReadAhead::Start(in.get());
  EXPECT_EQ(BlockedSignals(self), before);
  EXPECT_EQ(DeafThreads(), deaf_before + 1);
  out = ksym::UniqueFd();
  std::array<char, 16> block;
  EXPECT_EQ(source->Read(block).value(), 0u);
}

// Reading ahead makes the same table.
TEST(ReadAhead, SameTable) {
  const std::string path = testing::TempDir() + "read_ahead_listing";
  std::ofstream listing(path);
  for (int i = 0; i < 20000; ++i) {
    listing << std::hex << 0xffffffff81000000 + uint64_t{16} * i
            << " t function_" << i << '\n';
  }
  listing.close();
  const auto plain = ksym::OpenKernelSymbols(path);
  const auto ahead =
      ksym::OpenKernelSymbols(path, {.make_stream = ReadAhead::Start});
  std::filesystem::remove(path);
  ASSERT_TRUE(plain && ahead);
  EXPECT_EQ(plain->symbol_count(), 20000u);
  EXPECT_TRUE(std::ranges::equal(plain->bytes(), ahead->bytes()));
}

}  // namespace
}  // namespace profd
