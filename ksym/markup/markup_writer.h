// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ksym/base/address.h"
#include "ksym/markup/markup_context.h"

namespace ksym {

// What kind of address a frame has (see the specification's `bt`).
enum class MarkupCode : uint8_t { kReturnAddress, kPrecise };

// Builders of elements, for programs that log addresses and leave the names to
// a filter. Each appends one element to `out`, without a newline; context
// elements belong on lines of their own:
//   AppendMarkupReset(out += "\n");
//   AppendMarkupModule({.id = 0, .name = "app", .build_id = "83238a"}, out);
// No lookup, no lock and no system call. Names are kept but for what would end
// a field, a line or an element, or is no printable text: ':' and '}' become
// '_', and the rest what AppendPrintable makes of it.
void AppendMarkupReset(std::string& out);
void AppendMarkupModule(const MarkupModule& module, std::string& out);
// `mmap.mode` is of "rwx" in that order and not empty.
void AppendMarkupMmap(const MarkupMmap& mmap, std::string& out);
void AppendMarkupFrame(uint64_t number, Address address, MarkupCode code,
                       std::string& out);
void AppendMarkupCode(Address address, MarkupCode code, std::string& out);
void AppendMarkupData(Address address, std::string& out);
void AppendMarkupSymbol(std::string_view linkage_name, std::string& out);
void AppendMarkupDumpFile(std::string_view type, std::string_view name,
                          std::string& out);

// A name or text as it may stand in a field.
void AppendMarkupField(std::string_view text, std::string& out);

}  // namespace ksym
