// SPDX-License-Identifier: Apache-2.0
// Logs with symbolizer markup: the parser keeps every byte, and the filter's
// output does not depend on how the log is cut into pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/markup/markup_filter.h"
#include "ksym/markup/markup_parser.h"
#include "tests/ksym/markup/fake_symbolizer.h"

namespace {

struct Filtered {
  std::string log;
  std::string report;
};

Filtered Filter(std::string_view log, size_t chunk,
                const ksym::MarkupFilterOptions& options) {
  ksym::FakeMarkupSymbolizer symbolizer;
  ksym::MarkupStrings output;
  ksym::MarkupFilter filter(options, symbolizer, output);
  for (; !log.empty(); log.remove_prefix(std::min(chunk, log.size()))) {
    filter.Push(log.substr(0, chunk));
  }
  filter.Finish();
  return {output.log, output.report};
}

// Lines in, pieces out: together they are the line again.
void CheckParser(std::string_view log) {
  ksym::MarkupParser parser(std::vector<std::string>{});
  ksym::MarkupNode node;
  while (!log.empty()) {
    const size_t size = std::min(log.find('\n'), log.size() - 1) + 1;
    std::string text;
    parser.BeginLine(log.substr(0, size));
    while (parser.Next(node)) text += node.text;
    if (text != log.substr(0, size)) std::abort();
    log.remove_prefix(size);
  }
}

}  // namespace

// The first byte says how the rest, a log, is filtered.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const unsigned how = data[0];
  const std::string_view log(reinterpret_cast<const char*>(data) + 1, size - 1);
  CheckParser(log);
  ksym::MarkupFilterOptions options;
  if ((how & 1) != 0) options.color = ksym::MarkupColor::kOn;
  if ((how & 2) != 0) options.max_line_bytes = 64;
  const Filtered whole = Filter(log, size, options);
  const Filtered pieces = Filter(log, 1 + (how >> 2), options);
  if (whole.log != pieces.log || whole.report != pieces.report) std::abort();
  return 0;
}
