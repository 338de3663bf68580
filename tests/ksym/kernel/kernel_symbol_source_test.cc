// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_symbol_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_blob_writer.h"
#include "tests/ksym/kernel/kernel_tables.h"

namespace ksym {
namespace {

constexpr char kListing[] =
    "ffffffff81000000 T _stext\nffffffff81000010 T __pfx_f\n"
    "ffffffff81000020 T f\nffffffff81000040 T _etext\n";

std::string WriteFile(const std::string& name, std::string_view bytes) {
  const std::string path = testing::TempDir() + "/" + name;
  auto file = AtomicFile::Create(path);
  if (!file || !file->Write(bytes) || !file->Commit()) ADD_FAILURE() << path;
  return path;
}

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> Blob() {
  std::vector<BlobSymbol> symbols;
  for (const auto& symbol : ksym_test::SortedSymbols(kListing)) {
    symbols.push_back({Address{symbol.address}, symbol.type, symbol.name});
  }
  return WriteKallsymsBlob(symbols).value();
}

void ExpectAnswers(const Result<KernelSymbolSource>& source) {
  ASSERT_TRUE(source) << source.error().message();
  SymbolNameBuffer buffer;
  const auto body = source->Find(Address{0xffffffff8100003f}, buffer);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->name, "f");
  EXPECT_EQ(body->offset, 31u);
  EXPECT_EQ(body->size, 32u);
  const auto padding = source->Find(Address{0xffffffff81000018}, buffer);
  ASSERT_TRUE(padding);
  EXPECT_EQ(padding->name, "f");
  EXPECT_TRUE(padding->in_prefix);
  EXPECT_FALSE(source->Find(Address{0xffffffff81000040}, buffer));
  EXPECT_FALSE(source->Find(Address{0xffffffff80ffffff}, buffer));
  EXPECT_EQ(source->symbol_count(), 4u);
  EXPECT_THAT(source->FindByName("f"),
              testing::ElementsAre(Address{0xffffffff81000020}));
}

// A listing, a compact map and a blob are told apart and answer alike.
TEST(KernelSymbolSource, AllFormsAnswerAlike) {
  const auto listing = OpenKernelSymbols(WriteFile("listing", kListing));
  ExpectAnswers(listing);
  ExpectAnswers(
      OpenKernelSymbols(WriteFile("compact", Text(listing->bytes()))));
  const auto blob = OpenKernelSymbols(WriteFile("blob", Text(Blob())));
  ExpectAnswers(blob);
  EXPECT_NE(blob->blob(), nullptr);
  EXPECT_EQ(blob->map(), nullptr);
}

// The reading end of a pipe that holds `bytes`, which are few.
UniqueFd PipeOf(std::string_view bytes) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) ADD_FAILURE();
  UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  EXPECT_TRUE(WriteAll(out.get(), bytes));
  return in;
}

Result<KernelSymbolSource> OpenPipe(std::string_view bytes) {
  const UniqueFd pipe = PipeOf(bytes);
  return OpenKernelSymbols("/proc/self/fd/" + std::to_string(pipe.get()));
}

// So they are from a pipe, whose first bytes cannot be looked at twice.
TEST(KernelSymbolSource, AllFormsFromAPipe) {
  const auto listing = OpenPipe(kListing);
  ExpectAnswers(listing);
  ExpectAnswers(OpenPipe(Text(listing->bytes())));
  ExpectAnswers(OpenPipe(Text(Blob())));
  for (const std::string_view bad : {"", "hello\n", "1000"}) {
    EXPECT_FALSE(OpenPipe(bad)) << bad;
  }
  const auto tiny = OpenPipe("1 T a");
  ASSERT_TRUE(tiny);
  EXPECT_EQ(tiny->symbol_count(), 1u);
}

// What bytes() gave can be read again, from both binary forms.
TEST(KernelSymbolSource, BytesRoundTrip) {
  const auto map = LoadKallsyms(ksym_test::FdOf(kListing).get());
  ASSERT_TRUE(map);
  ExpectAnswers(KernelSymbolSource::FromBytes(
      {map->bytes().begin(), map->bytes().end()}));
  const auto blob = KernelSymbolSource::FromBytes(Blob());
  ASSERT_TRUE(blob);
  ExpectAnswers(KernelSymbolSource::FromBytes(
      {blob->bytes().begin(), blob->bytes().end()}));
}

// The bounds of a blob's text can be told.
TEST(KernelSymbolSource, BoundsOfABlob) {
  const auto blob = KernelSymbolSource::FromBytes(
      Blob(), {.stext = {}, .etext = Address{0xffffffff81000030}});
  ASSERT_TRUE(blob);
  SymbolNameBuffer buffer;
  EXPECT_TRUE(blob->Find(Address{0xffffffff8100002f}, buffer));
  EXPECT_FALSE(blob->Find(Address{0xffffffff81000030}, buffer));
}

// Errors name the file once.
TEST(KernelSymbolSource, ErrorsNameTheFile) {
  for (const auto& path :
       {testing::TempDir() + "/absent", WriteFile("text", "hello\n"),
        WriteFile("damaged", "KSYMMAP\n and more"),
        WriteFile("short", std::string(8, '\1') + std::string(8, '\0')),
        WriteFile("zeros", std::string("\1\0\0\0\0\0\0\0", 8))}) {
    const auto source = OpenKernelSymbols(path);
    ASSERT_FALSE(source) << path;
    const std::string& message = source.error().message();
    EXPECT_EQ(message.find(path), 0u) << message;
    EXPECT_EQ(message.find(path, 1), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace ksym
