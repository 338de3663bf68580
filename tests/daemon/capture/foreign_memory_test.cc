// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/foreign_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

constexpr size_t kPage = 4096;

uint32_t OwnTid() { return static_cast<uint32_t>(::gettid()); }

uint64_t AddressOf(const void* memory) {
  return reinterpret_cast<uint64_t>(memory);
}

TEST(ForeignMemoryTest, ReadsUpToWhatIsNotThere) {
  void* const pages = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 7, kPage);
  // Not unmapped: another thread's memory could come there.
  ASSERT_EQ(::mprotect(static_cast<char*>(pages) + kPage, kPage, PROT_NONE), 0);
  ForeignMemory memory;
  std::array<std::byte, 100> out = {};
  EXPECT_EQ(memory.Read(OwnTid(), AddressOf(pages) + kPage - 60, out), 60u);
  EXPECT_EQ(out[59], std::byte{7});
  EXPECT_EQ(out[60], std::byte{0});
  EXPECT_EQ(memory.Read(OwnTid(), AddressOf(pages) + kPage, out), 0u);
  EXPECT_EQ(memory.Read(OwnTid(), AddressOf(pages), out), out.size());
  ::munmap(pages, 2 * kPage);
}

// A page that nobody brings, as a program's own server of page faults can have.
class SilentPage {
 public:
  SilentPage()
      : memory_(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        fd_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC))) {
    uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
    uffdio_register range = {
        .range = {.start = AddressOf(memory_), .len = kPage},
        .mode = UFFDIO_REGISTER_MODE_MISSING,
        .ioctls = 0};
    is_silent_ = fd_.valid() && ::ioctl(fd_.get(), UFFDIO_API, &api) == 0 &&
                 ::ioctl(fd_.get(), UFFDIO_REGISTER, &range) == 0;
  }
  // Whoever waits for the page gets it, a moment later: it is not unmapped, as
  // the next page would come there, and would be brought by them.
  ~SilentPage() { fd_.Reset(); }
  SilentPage(const SilentPage&) = delete;
  SilentPage& operator=(const SilentPage&) = delete;

  bool is_silent() const { return is_silent_; }
  uint64_t address() const { return AddressOf(memory_); }

 private:
  void* memory_;
  ksym::UniqueFd fd_;
  bool is_silent_ = false;
};

TEST(ForeignMemoryTest, LeavesMemoryThatDoesNotAnswer) {
  std::optional<SilentPage> page(std::in_place);
  if (!page->is_silent()) GTEST_SKIP() << "no userfaultfd here";
  const std::array<std::byte, 8> own = {std::byte{5}};
  std::array<std::byte, 8> out = {};
  const auto begin = std::chrono::steady_clock::now();
  {
    ForeignMemory memory;
    for (int i = 1; i <= ForeignMemory::kMaxLeftBehind; ++i) {
      EXPECT_EQ(memory.Read(OwnTid(), page->address(), out), 0u);
      // Others are read as long as there are not too many.
      EXPECT_EQ(memory.Read(OwnTid(), AddressOf(own.data()), out),
                i < ForeignMemory::kMaxLeftBehind ? out.size() : 0u);
    }
  }
  // It waits for nobody whom it has left behind.
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            (ForeignMemory::kMaxLeftBehind + 8) * ForeignMemory::kPatience);
}

TEST(ForeignMemoryTest, ReadsAgainWhenThoseLeftBehindAreBack) {
  std::optional<SilentPage> page(std::in_place);
  if (!page->is_silent()) GTEST_SKIP() << "no userfaultfd here";
  const std::array<std::byte, 8> own = {std::byte{5}};
  std::array<std::byte, 8> out = {};
  ForeignMemory memory;
  for (int i = 0; i < ForeignMemory::kMaxLeftBehind; ++i) {
    EXPECT_EQ(memory.Read(OwnTid(), page->address(), out), 0u);
  }
  EXPECT_EQ(memory.Read(OwnTid(), AddressOf(own.data()), out), 0u);
  page.reset();
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (memory.Read(OwnTid(), AddressOf(own.data()), out) == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(out, own);
}

}  // namespace
}  // namespace profd
