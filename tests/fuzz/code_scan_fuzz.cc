// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as code that nothing describes. The first byte says where one
// function is known to begin.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "ksym/unwind/x86_64/code_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxBytes = 1 << 16;
  if (size < 2 || size > kMaxBytes) return 0;
  const std::span code(data + 1, size - 1);
  const auto half = static_cast<uint32_t>(code.size() / 2);
  ksym::CodeToScan input;
  // Two gaps, with a byte of described code between them.
  if (half > 0) input.gaps.push_back({0, half});
  if (half + 1 < code.size()) {
    input.gaps.push_back({half + 1, static_cast<uint32_t>(code.size())});
  }
  input.read = [&](uint32_t at, std::span<std::byte> out) {
    if (at > code.size() || out.size() > code.size() - at) std::abort();
    std::memcpy(out.data(), code.data() + at, out.size());
    return true;
  };
  input.entries = {data[0]};
  input.elsewhere = [&](uint32_t at) {
    return ksym::CodeElsewhere{at < code.size(), 8};
  };
  const auto gaps = input.gaps;
  uint32_t end = 0;
  for (const ksym::ScannedRange& range : ksym::ScanCode(std::move(input))) {
    if (range.start < end || range.end <= range.start) std::abort();
    if (!range.facts.IsKnown()) std::abort();
    end = range.end;
    bool is_in_gap = false;
    for (const ksym::CodeGap& gap : gaps) {
      is_in_gap |= range.start >= gap.start && range.end <= gap.end;
    }
    if (!is_in_gap) std::abort();
  }
  return 0;
}
