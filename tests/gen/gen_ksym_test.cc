// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gen/ksym_generate.h"
#include "gen/ksym_inspect.h"
#include "gen/ksym_options.h"
#include "ksym/base/file.h"

namespace gen {
namespace {

using testing::HasSubstr;

constexpr char kListing[] =
    "0000000000001000 T _start\n0000000000001100 T do_fork\n"
    "0000000000001200 T cpu_startup_entry\n0000000000002000 d _ZN1a1bE\n";

class GenKsym : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/gen_ksym." + std::to_string(::getpid());
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string WriteInput(std::string_view text) const {
    const std::string path = directory_ + "/input";
    auto file = ksym::AtomicFile::Create(path);
    EXPECT_TRUE(file && file->Write(text) && file->Commit());
    return path;
  }
  // Generates from the text with more arguments; the error's text or "".
  std::string Generate(std::string_view text,
                       std::vector<std::string_view> arguments) const {
    const std::string input = WriteInput(text);
    const std::string output = Output();
    arguments.insert(arguments.end(), {"-o", output, input});
    const auto options = ParseKsymOptions(arguments);
    if (!options) return options.error().message();
    const auto status = GenerateKsymFile(*options);
    return status ? "" : status.error().message();
  }
  std::string Output() const { return directory_ + "/output"; }
  // What an inspection of the output prints.
  std::string Inspect(std::vector<std::string_view> arguments) const {
    const auto options = ParseKsymOptions(arguments);
    if (!options) return options.error().message();
    std::string text;
    const auto status =
        InspectKsym(*options, [&](std::string_view piece) { text += piece; });
    return status ? text : status.error().message();
  }

  std::string directory_;
};

// Both formats give the listing back.
TEST_F(GenKsym, DumpIsTheListing) {
  for (const char* format : {"ksym", "compact"}) {
    ASSERT_EQ(Generate(kListing, {"--format", format}), "");
    EXPECT_EQ(Inspect({"--dump", Output()}), kListing) << format;
  }
}

// The module column survives in the compact format and never gets into a name.
TEST_F(GenKsym, Modules) {
  constexpr char kModule[] = "00000000c0001000 t f\t[m]\n";
  ASSERT_EQ(Generate(kModule, {"--format", "compact"}), "");
  EXPECT_EQ(Inspect({"--dump", Output()}), kModule);
  EXPECT_EQ(Inspect({"--lookup", Output(), "0xc0001004"}),
            "00000000c0001004 f+0x4/0x1000 [m]\n");
  ASSERT_EQ(Generate(kModule, {}), "");
  EXPECT_EQ(Inspect({"--dump", Output()}), "00000000c0001000 t f\n");
}

// Types and bounds choose symbols; names are demangled on demand.
TEST_F(GenKsym, Choices) {
  ASSERT_EQ(Generate(kListing, {"--types", "d", "--demangle"}), "");
  EXPECT_EQ(Inspect({"--dump", Output()}), "0000000000002000 d a::b\n");
  ASSERT_EQ(Generate(kListing, {"--stext", "1100", "--etext", "0x1200"}), "");
  EXPECT_EQ(Inspect({"--dump", Output()}), "0000000000001100 T do_fork\n");
}

// Addresses and names are looked up in both formats; "?" stands for none.
TEST_F(GenKsym, Lookups) {
  for (const char* format : {"ksym", "compact"}) {
    ASSERT_EQ(Generate(kListing, {"--format", format}), "");
    EXPECT_EQ(Inspect({"--lookup", Output(), "1105", "fff"}),
              "0000000000001105 do_fork+0x5/0x100\n0000000000000fff ?\n");
    EXPECT_EQ(Inspect({"--name", Output(), "do_fork", "a"}),
              "do_fork 0000000000001100\na ?\n");
    EXPECT_THAT(Inspect({"--stats", Output()}), HasSubstr("symbols 4\n"));
  }
}

// A malformed line stops it, is named, and leaves no file.
TEST_F(GenKsym, MalformedLine) {
  const std::string error = Generate("1000 T a\n\n1010 T b\n", {});
  EXPECT_EQ(error, directory_ + "/input:2: no hexadecimal address");
  EXPECT_FALSE(std::filesystem::exists(Output()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}),
            1);
}

// A failure leaves the file that was there.
TEST_F(GenKsym, FailureKeepsTheOldFile) {
  ASSERT_EQ(Generate(kListing, {}), "");
  EXPECT_NE(Generate("0 T a\n0 T b\n", {}), "");
  EXPECT_EQ(Inspect({"--dump", Output()}), kListing);
}

// A link and what it leads to stay; a dash is standard output.
TEST_F(GenKsym, OutputThroughALink) {
  std::filesystem::create_symlink("real", Output());
  ASSERT_EQ(Generate(kListing, {}), "");
  EXPECT_TRUE(std::filesystem::is_symlink(Output()));
  EXPECT_EQ(Inspect({"--dump", directory_ + "/real"}), kListing);
  EXPECT_EQ(ParseKsymOptions(std::vector<std::string_view>{"-o", "-"})->output,
            "");
}

// Hidden addresses are told from a broken file.
TEST_F(GenKsym, HiddenAddresses) {
  EXPECT_THAT(Generate("0 T a\n0 T b\n", {}), HasSubstr("CAP_SYSLOG"));
}

// Wrong arguments are refused with what is wrong.
TEST(KsymOptions, WrongArguments) {
  using Arguments = std::vector<std::string_view>;
  const auto error = [](const Arguments& arguments) {
    const auto options = ParseKsymOptions(arguments);
    return options ? std::string() : options.error().message();
  };
  EXPECT_THAT(error({"--what"}), HasSubstr("--what"));
  EXPECT_THAT(error({"--format"}), HasSubstr("--format: 1 required"));
  EXPECT_THAT(error({"--format", "elf"}), HasSubstr("elf"));
  EXPECT_THAT(error({"--stext", "xyz"}), HasSubstr("xyz"));
  EXPECT_THAT(error({"--types", ""}), HasSubstr("--types"));
  EXPECT_THAT(error({"--stext", "2", "--etext", "1"}), HasSubstr("below"));
  EXPECT_THAT(error({"--dump", "--stats", "f"}), HasSubstr("only one"));
  EXPECT_THAT(error({"--dump"}), HasSubstr("FILE"));
  EXPECT_THAT(error({"--lookup", "f"}), HasSubstr("nothing to look up"));
  EXPECT_THAT(error({"a", "b"}), HasSubstr("more than one file"));
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({"--", "-file"}), "");
}

}  // namespace
}  // namespace gen
