// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/history/queries.h"
#include "daemon/output/output_buffer.h"

namespace profd {

// Answers of a history as text for people. Names are printable and shortened to
// so many columns of the widest line; 0: any. Times are local.

// A line for each file: when, how large, what is in it and what is not.
void WriteListing(const history::ListingAnswer& answer, OutputBuffer& out);

// Functions by what they used themselves; at most so many rows, 0: all.
void WriteFunctions(const history::FunctionTable& table, size_t top,
                    size_t columns, OutputBuffer& out);

// With one row a line for each step, with a bar; with several a line for each
// row, with a character for each step.
void WriteTimeline(const history::Timeline& line, history::TimelineBy by,
                   size_t columns, OutputBuffer& out);
}  // namespace profd
