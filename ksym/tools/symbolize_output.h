// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ksym/tools/address_source.h"

namespace ksym {

// As llvm-symbolizer prints by default: per frame the function and its source
// line, then an empty line; what is not known is "??". Columns are not known.
// Names are printable text.
//   Inner(int)
//   /src/program.cc:12:0
//   main
//   /src/program.cc:31:0
//
void AppendLlvmStyle(const AddressAnswer& answer, std::string& out);

// As addr2line: without columns and the empty line.
void AppendGnuStyle(const AddressAnswer& answer, std::string& out);

// As llvm-symbolizer --output-style=JSON has it, without a newline, and with a
// "reason" when there is no name. `address` is nothing for a line of the input
// that is none.
//   {"Address":"0x1139","ModuleName":"a.out","Symbol":[{"Column":0,
//   "Discriminator":0,"FileName":"","FunctionName":"main","Line":0,
//   "StartAddress":"0x1130","StartFileName":"","StartLine":0}]}
void AppendJson(std::optional<uint64_t> address, const AddressAnswer& answer,
                std::string& out);

}  // namespace ksym
