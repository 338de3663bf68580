// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/history/history_writer.h"
#include "tests/daemon/history/history_answers.h"
#include "tests/daemon/history/stack_parts.h"

namespace profd::history {

// Directories whose files can be thinned out.

inline constexpr uint64_t kDay = 24 * kHour;
// The first hour's files are a day old.
inline constexpr uint64_t kOld = kDue + kDay;

// With rare stacks.
inline Profile PartWithRare(unsigned number) {
  return PartOf(number,
                {{.user = "main;serve", .count = 3},
                 {.user = fmt::format("main;serve;once_{};deep", number)},
                 {.user = fmt::format("main;rare_{}", number)}});
}

inline void WriteRareParts(HistoryWriter& writer, unsigned begin,
                           unsigned end) {
  for (unsigned i = begin; i < end; ++i) {
    writer.Add(PartWithRare(i));
    ASSERT_TRUE(writer.Commit(kFirstPart + (i + 1) * kSecond));
  }
}

// A directory with a file of each of some hours, put together.
inline void MakeHours(const std::string& directory, unsigned hours) {
  auto writer = OpenForParts(directory);
  ASSERT_TRUE(writer);
  for (unsigned hour = 0; hour < hours; ++hour) {
    WriteRareParts(*writer, hour * 3600, hour * 3600 + 3);
  }
  for (unsigned hour = 0; hour < hours; ++hour) {
    ASSERT_TRUE(writer->Compact(kDue + hours * kHour, kNever));
  }
}

}  // namespace profd::history
