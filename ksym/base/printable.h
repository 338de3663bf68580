// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ksym {

// Appends `name` so that it can neither break the line it stands in nor reach
// a terminal as a command: control characters (C0, DEL, C1), line and
// paragraph separators, bidirectional overrides and every byte that is not
// valid UTF-8 (RFC 3629) become one '?' per byte.
void AppendPrintable(std::string_view name, std::string& out);

// The same as a text of its own.
std::string Printable(std::string_view name);

// Whether a text is of printable ASCII alone, which AppendPrintable appends as
// it is.
bool IsPrintableAscii(std::string_view text);

}  // namespace ksym
