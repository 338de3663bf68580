// SPDX-License-Identifier: Apache-2.0
// Looks addresses of standard input up in a GSYM file, in this process:
//
//   bench_gsym FILE SECONDS < ADDRESSES
//
// and prints as JSON the time from the file's path to the first answer, lookups
// per second without an index, with one that is made meanwhile, and with one
// that was made, each over all addresses and the last for that many seconds,
// how many addresses were found, frames in all, and the peak memory.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/gsym/gsym_image.h"
#include "ksym/gsym/gsym_index.h"
#include "ksym/gsym/gsym_lookup.h"

namespace {

using Clock = std::chrono::steady_clock;
using Lookup =
    std::function<ksym::Result<bool>(ksym::ElfAddress, ksym::GsymAnswer&)>;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<ksym::ElfAddress> ReadAddresses() {
  std::vector<ksym::ElfAddress> addresses;
  const auto add = [&](std::string_view lines) {
    while (!lines.empty()) {
      std::string_view line = ksym::TakeField(lines, '\n');
      if (line.starts_with("0x")) line.remove_prefix(2);
      const auto address = ksym::ParseUnsigned(line, 16);
      if (address) addresses.push_back({*address});
    }
    return true;
  };
  if (!ksym::ForEachBlockOfLines(STDIN_FILENO, add)) addresses.clear();
  return addresses;
}

struct Counts {
  uint64_t found = 0;
  uint64_t frames = 0;
};

// Lookups per second, over all addresses again and again.
double Rate(const std::vector<ksym::ElfAddress>& addresses, double seconds,
            const Lookup& lookup, Counts& counts) {
  ksym::GsymAnswer answer;
  const auto begin = Clock::now();
  uint64_t passes = 0;
  do {
    counts = {};
    for (const ksym::ElfAddress address : addresses) {
      const auto found = lookup(address, answer);
      if (!found || !*found) continue;
      ++counts.found;
      counts.frames += answer.frames.size();
    }
    ++passes;
  } while (SecondsSince(begin) < seconds);
  return static_cast<double>(passes * addresses.size()) / SecondsSince(begin);
}

int Run(const char* path, double seconds) {
  const auto addresses = ReadAddresses();
  if (addresses.empty()) return 1;
  ksym::GsymAnswer answer;
  const auto begin = Clock::now();
  auto mapped = ksym::MappedFile::Open(path);
  if (!mapped) return 1;
  const auto image = ksym::GsymImage::OfFile(std::move(*mapped));
  if (!image) return 1;
  const ksym::GsymFile& file = image->file();
  if (!ksym::LookupGsym(file, addresses.front(), answer)) return 1;
  const double first = SecondsSince(begin);
  Counts counts;
  const double plain = Rate(
      addresses, 0,
      [&](ksym::ElfAddress address, ksym::GsymAnswer& out) {
        return ksym::LookupGsym(file, address, out);
      },
      counts);
  ksym::GsymIndex index(file);
  const auto indexed = [&](ksym::ElfAddress address, ksym::GsymAnswer& out) {
    return ksym::LookupGsym(file, address, index, out);
  };
  const double cold = Rate(addresses, 0, indexed, counts);
  const double warm = Rate(addresses, seconds, indexed, counts);
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      R"({{"first_us":{:.1f},"plain":{:.0f},"cold":{:.0f},"warm":{:.0f},)"
      R"("found":{},"frames":{},"index_bytes":{},"peak_kib":{}}})"
      "\n",
      first * 1e6, plain, cold, warm, counts.found, counts.frames,
      index.memory_bytes(), usage.ru_maxrss);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_gsym FILE SECONDS < ADDRESSES\n");
    return 2;
  }
  return Run(argv[1], std::strtod(argv[2], nullptr));
}
