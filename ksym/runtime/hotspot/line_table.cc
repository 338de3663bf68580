// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/line_table.h"

#include <algorithm>

namespace ksym {
namespace {

// The entries of a table, one after the other.
class LineEntries {
 public:
  LineEntries(std::span<const std::byte> table, HotspotNumbers form)
      : reader_(table, form) {}

  enum class State : uint8_t { kEntry, kEnd, kCorrupt };
  State Next() {
    constexpr uint8_t kEndByte = 0;
    constexpr uint8_t kLong = 0xff;
    constexpr int kLineBits = 3;
    const auto step = reader_.NextByte();
    if (!step) return State::kCorrupt;
    if (*step == kEndByte) return State::kEnd;
    if (*step == kLong) {
      const auto bytecodes = reader_.NextSigned();
      const auto lines = reader_.NextSigned();
      if (!bytecodes || !lines) return State::kCorrupt;
      bytecode += *bytecodes;
      line += *lines;
    } else {
      bytecode += *step >> kLineBits;
      line += *step & ((1 << kLineBits) - 1);
    }
    return State::kEntry;
  }
  size_t left() const { return reader_.left(); }

  int64_t bytecode = 0;
  int64_t line = 0;

 private:
  HotspotNumberReader reader_;
};

}  // namespace

std::optional<uint32_t> HotspotLineAt(std::span<const std::byte> table,
                                      HotspotNumbers form, uint32_t bytecode) {
  LineEntries entries(table, form);
  int64_t best = -1;
  int64_t line = 0;
  auto state = entries.Next();
  for (; state == LineEntries::State::kEntry; state = entries.Next()) {
    if (entries.bytecode > bytecode || entries.bytecode < best) continue;
    best = entries.bytecode;
    line = entries.line;
  }
  // Lines are u2 in class files.
  if (state == LineEntries::State::kCorrupt || best < 0 || line <= 0 ||
      line > UINT16_MAX) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(line);
}

size_t HotspotLineTableBytes(std::span<const std::byte> table,
                             HotspotNumbers form) {
  LineEntries entries(table, form);
  auto state = entries.Next();
  while (state == LineEntries::State::kEntry) state = entries.Next();
  return state == LineEntries::State::kEnd ? table.size() - entries.left() : 0;
}

}  // namespace ksym
