// SPDX-License-Identifier: Apache-2.0
// excerpt_check PROGRAM...: whether excerpts of a program's functions answer as
// all of its functions do, at the start, in the middle, at the end of and
// behind each function. Prints how many answers were compared, and differences.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/gsym/gsym_image.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"

namespace {

using ksym::Result;

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
// Inputs of one address each; a large program's are a selection.
constexpr size_t kMaxSingles = 2000;
constexpr size_t kMaxShown = 10;

Result<ksym::ByteSource> Open(const std::string& path) {
  auto fd = ksym::OpenForRead(path);
  if (!fd) return ksym::Fail(std::move(fd.error()));
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return ksym::Fail(ksym::ErrorCode::kIo, path);
  return ksym::ByteSource::OfMappedFile(std::move(*fd), size);
}

Result<ksym::ElfFunctions> OpenFunctions(const std::string& path) {
  auto source = Open(path);
  if (!source) return ksym::Fail(std::move(source.error()));
  return ksym::ElfFunctions::Open(
      *source,
      {std::filesystem::canonical(path).string(), Open, nullptr, nullptr});
}

std::string Describe(const ksym::GsymFile& file, uint64_t address) {
  ksym::GsymAnswer answer;
  const auto found = ksym::LookupGsym(file, {address}, answer);
  if (!found) return found.error().message();
  if (!*found) return "nothing";
  std::string text = std::to_string(answer.start.value);
  for (const ksym::GsymFrame& frame : answer.frames) {
    text += "\n    " + std::string(frame.function) + " + " +
            std::to_string(frame.offset) + " " + std::string(frame.directory) +
            "/" + std::string(frame.file) + ":" + std::to_string(frame.line);
  }
  return text;
}

// At all functions, rising.
std::vector<uint64_t> AddressesOf(const ksym::GsymFile& file) {
  std::vector<uint64_t> addresses;
  for (uint32_t i = 0; i < file.function_count(); ++i) {
    const uint64_t start = file.FunctionStart(i).value;
    const uint64_t size = file.FunctionBytes(i).Read<uint32_t>();
    for (const uint64_t at : {uint64_t{0}, size / 2, size - 1, size}) {
      addresses.push_back(start + at);
    }
  }
  std::ranges::sort(addresses);
  const auto rest = std::ranges::unique(addresses);
  addresses.erase(rest.begin(), rest.end());
  return addresses;
}

class Check {
 public:
  Check(ksym::ElfFunctions functions, ksym::GsymImage whole)
      : functions_(std::move(functions)), whole_(std::move(whole)) {}

  // Cuts the addresses into parts of so many, at most `max_parts` of them.
  void Compare(std::span<const uint64_t> addresses, size_t size,
               size_t max_parts) {
    const size_t parts = (addresses.size() + size - 1) / size;
    const size_t step = (parts + max_parts - 1) / max_parts;
    for (size_t i = 0; i < parts; i += std::max<size_t>(step, 1)) {
      ComparePart(addresses.subspan(
          i * size, std::min(size, addresses.size() - i * size)));
    }
  }

  const ksym::GsymFile& whole() const { return whole_.file(); }
  size_t compared() const { return compared_; }
  size_t different() const { return different_; }

 private:
  void ComparePart(std::span<const uint64_t> addresses) {
    auto excerpt = ksym::ConvertExcerptToGsym(functions_, addresses, kNoLimit);
    if (!excerpt) return Differ(addresses[0], excerpt.error().message(), "");
    const auto file = ksym::GsymFile::Parse(excerpt->bytes);
    if (!file) return Differ(addresses[0], file.error().message(), "");
    for (const uint64_t address : addresses) {
      const std::string expected = Describe(whole(), address);
      const std::string found = Describe(*file, address);
      ++compared_;
      if (found != expected) Differ(address, found, expected);
    }
  }

  void Differ(uint64_t address, const std::string& found,
              const std::string& expected) {
    if (++different_ > kMaxShown) return;
    std::printf("%#llx: %s\n  instead of %s\n",
                static_cast<unsigned long long>(address), found.c_str(),
                expected.c_str());
  }

  ksym::ElfFunctions functions_;
  ksym::GsymImage whole_;
  size_t compared_ = 0;
  size_t different_ = 0;
};

Result<size_t> CountDifferences(const std::string& path) {
  auto all = OpenFunctions(path);
  if (!all) return ksym::Fail(std::move(all.error()));
  auto made = ksym::ConvertFunctionsToGsym(
      std::make_unique<ksym::ElfFunctions>(std::move(*all)), {});
  if (!made) return ksym::Fail(std::move(made.error()));
  auto whole = ksym::GsymImage::OfMemory(std::move(made->bytes));
  if (!whole) return ksym::Fail(std::move(whole.error()));
  auto functions = OpenFunctions(path);
  if (!functions) return ksym::Fail(std::move(functions.error()));
  Check check(std::move(*functions), std::move(*whole));
  const std::vector<uint64_t> addresses = AddressesOf(check.whole());
  check.Compare(addresses, 1, kMaxSingles);
  check.Compare(addresses, 7, kMaxSingles / 7);
  check.Compare(addresses, 1000, kMaxSingles);
  check.Compare(addresses, addresses.size(), 1);
  std::printf("%zu answers, %zu differences\n", check.compared(),
              check.different());
  return check.different();
}

}  // namespace

int main(int argc, char** argv) {
  bool ok = argc > 1;
  for (const char* const path : std::span(argv, argc).subspan(1)) {
    const auto differences = CountDifferences(path);
    if (!differences) {
      std::fprintf(stderr, "%s: %s\n", path,
                   differences.error().message().c_str());
    }
    ok = ok && differences && *differences == 0;
  }
  return ok ? 0 : 1;
}
