#include "ksym/tools/answer_lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "ksym/base/file.h"

namespace ksym {
namespace {

// Names an address by itself, with as many bytes behind it as were asked for.
class Echo : public AddressSource {
 public:
  explicit Echo(size_t bytes) : tail_(bytes, 'x') {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    answer = {};
    name_ = std::to_string(address) + tail_;
    answer.frames.push_back({.function = name_, .directory = {}, .file = {}});
  }

 private:
  std::string tail_;
  std::string name_;
};

std::string Answers(AddressSource& source, std::string_view lines) {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) return "no file";
  const int fd = ::fileno(file);
  const auto status =
      LineAnswerer(source, SymbolizeOptions::Style::kGnu, fd).Answer(lines);
  ::lseek(fd, 0, SEEK_SET);
  auto text = ReadAll(fd, size_t{1} << 28);
  std::fclose(file);
  return status && text ? *text : "failed";
}

// Answers come in the order of lines, whatever the order of addresses, and
// each line has one, also an equal one and one without an address.
TEST(LineAnswererTest, OrderOfLines) {
  Echo source(0);
  EXPECT_EQ(Answers(source, "0x20\n3\nnone\n20\n\n1"),
            "32\n??:0\n3\n??:0\n??\n??:0\n32\n??:0\n??\n??:0\n1\n??:0\n");
  EXPECT_EQ(Answers(source, ""), "");
}

// Also over more lines than a batch has, and more bytes than may wait.
TEST(LineAnswererTest, BeyondABatch) {
  for (const size_t bytes : {size_t{0}, size_t{8192}}) {
    Echo source(bytes);
    std::string lines;
    std::string expected;
    for (uint64_t i = 0; i < 2500; ++i) {
      const uint64_t address = i * 7919 % 2503;
      char line[32];
      std::snprintf(line, sizeof(line), "%lx\n", address);
      lines += line;
      expected +=
          std::to_string(address) + std::string(bytes, 'x') + "\n??:0\n";
    }
    EXPECT_TRUE(Answers(source, lines) == expected) << bytes;
  }
}

}  // namespace
}  // namespace ksym
