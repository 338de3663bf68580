// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ksym/base/result.h"
#include "ksym/markup/markup_filter.h"
#include "ksym/tools/markup_names.h"

namespace ksym {

// What ksym-symbolize does with --filter-markup.
struct FilterMarkupOptions {
  enum class Color : uint8_t { kAuto, kAlways, kNever };

  MarkupNamesOptions names;
  Color color = Color::kAuto;
  size_t max_line_bytes = MarkupFilterOptions().max_line_bytes;
};

// Filters standard input to standard output, and what is wrong with the log to
// standard error; a line is written when it has been read. Fails when one of
// them cannot be read or written; nothing in a log is a failure.
Status FilterStandardInput(const FilterMarkupOptions& options);

}  // namespace ksym
