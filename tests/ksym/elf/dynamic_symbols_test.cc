// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/dynamic_symbols.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

// Symbols of the C library are found with their sizes and bytes, those that it
// needs or does not have are not.
TEST(DynamicSymbolsTest, OfTheCLibrary) {
  const char* path = "/lib/x86_64-linux-gnu/libc.so.6";
  UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    GTEST_SKIP() << "no " << path;
  }
  const auto source =
      ByteSource::OfFile(std::move(fd), static_cast<uint64_t>(status.st_size));
  const auto image = ElfImage::Parse(source);
  ASSERT_TRUE(image);
  const auto symbols = DynamicSymbols::Open(source, *image);
  ASSERT_TRUE(symbols);
  const auto found = symbols->Find("malloc");
  ASSERT_TRUE(found);
  EXPECT_GT(found->size, 16u);
  EXPECT_FALSE(symbols->Find("malloc_"));
  EXPECT_FALSE(symbols->Find(""));
  EXPECT_FALSE(symbols->Find("_dl_argv"));

  std::array<std::byte, 16> bytes = {};
  EXPECT_TRUE(ReadInitialBytes(source, *image, found->address, bytes));
  EXPECT_NE(bytes, (std::array<std::byte, 16>{}));
  EXPECT_FALSE(ReadInitialBytes(source, *image, {~uint64_t{0} - 7}, bytes));
}

}  // namespace
}  // namespace ksym
