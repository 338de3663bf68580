// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ksym/base/function_batch.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym/gsym_writer.h"

namespace ksym {

// Two functions with lines; in the first one a call that is inlined in two
// places, with another one in it.
//   0x1000 main [0x1000, 0x1050)  lines main.c:10, util.h:3, util.h:5,
//   main.c:12
//     0x1010-0x1020, 0x1030-0x1038  twice, called at main.c:11
//       0x1014-0x1018               once, called at util.h:4
//   0x2000 tail [0x2000, 0x2010)  line main.c:20 from 0x2004 on
inline FunctionBatch SampleBatch() {
  FunctionBatch batch;
  batch.files = {{}, {"/src", "main.c"}, {"/src/include", "util.h"}};
  batch.lines = {{0x1000, 1, 10}, {0x1010, 2, 3},  {0x1014, 2, 5},
                 {0x1018, 2, 3},  {0x1020, 1, 12}, {0x1030, 2, 3},
                 {0x1038, 1, 12}, {0x2004, 1, 20}};
  batch.ranges = {{0x1010, 0x1020}, {0x1030, 0x1038}, {0x1014, 0x1018}};
  batch.inlines = {{"twice", 1, 1, 11, 0, 2}, {"once", 2, 2, 4, 2, 1}};
  batch.functions = {{"main", {0x1000, 0x1050}, 0, 7, 0, 2},
                     {"tail", {0x2000, 0x2010}, 7, 1, 0, 0}};
  return batch;
}

inline std::vector<std::byte> WriteGsym(const FunctionBatch& batch,
                                        const GsymWriterOptions& options = {},
                                        std::string_view uuid = "\x01\x02") {
  GsymWriter writer(options);
  writer.Add(batch);
  auto bytes = std::move(writer).Finish(uuid);
  return bytes ? std::move(*bytes) : std::vector<std::byte>();
}

// "once+0 /src/include/util.h:5; twice+4 ...", "none", or the error's text.
inline std::string LookupText(std::span<const std::byte> bytes,
                              uint64_t address) {
  const auto file = GsymFile::Parse(bytes);
  if (!file) return file.error().message();
  GsymAnswer answer;
  const auto found = LookupGsym(*file, {address}, answer);
  if (!found) return found.error().message();
  if (!*found) return "none";
  std::string text;
  for (const GsymFrame& frame : answer.frames) {
    if (!text.empty()) text += "; ";
    text += std::string(frame.function) + "+" + std::to_string(frame.offset);
    if (frame.file.empty()) continue;
    text += " " + std::string(frame.directory) + "/" + std::string(frame.file) +
            ":" + std::to_string(frame.line);
  }
  return text;
}

}  // namespace ksym
