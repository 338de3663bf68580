// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace profd {

// Names come from the profiled programs and may be made to deceive. These
// functions append a name so that it can neither change the meaning of the
// line it stands in nor reach the terminal as a command. What is replaced
// becomes one '?' per byte.

// For one frame of a folded line: as ksym::AppendPrintable, and
//   - an empty name becomes "[unknown]",
//   - ';', which separates frames, becomes ':',
//   - in a trailing run of spaces, digits and dots the spaces become '_', as
//     flamegraph.pl reads "name 12 7" as the two counts of a difference,
//   - an annotation at the end, "_[k]", becomes "_(k)": they are ours to give,
//   - a lone "-", the mark between user and kernel frames, becomes "_", and a
//     lone "--", the divider in front of a waker, becomes "__".
void AppendFoldedName(std::string_view name, std::string& out);

// The inside of a JSON string: as ksym::AppendPrintable, with '"' and '\'
// escaped.
void AppendJsonText(std::string_view name, std::string& out);

}  // namespace profd
