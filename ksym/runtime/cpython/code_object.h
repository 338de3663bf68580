// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/runtime/cpython/layout.h"
#include "ksym/runtime/cpython/line_table.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// What a code object says of the function that somebody wrote.
struct CpythonCode {
  // Qualified from 3.11 on, e.g. "Handler.get"; before "get". UTF-8.
  std::string name;
  std::string file;  // as the compiler was told; UTF-8
  uint32_t first_line = 0;
  // See CpythonLineAt(); an empty table could not be read.
  CpythonLayout::LineTable line_form = CpythonLayout::LineTable::kLocations;
  std::string line_table;

  CpythonLines lines() const {
    return {.form = line_form,
            .table = std::as_bytes(std::span(line_table)),
            .first_line = first_line};
  }
};

// Texts are cut after so many characters, with an ellipsis.
inline constexpr size_t kMaxCpythonText = 1024;
// A longer line table is not read.
inline constexpr size_t kMaxCpythonLineTable = size_t{256} << 10;

// Reads the code object at the address. kNotFound: it, its name or its file
// cannot be read. Everything there is untrusted. Reads at most 300 KiB.
Result<CpythonCode> ReadCpythonCode(const Memory& memory,
                                    const CpythonLayout& layout,
                                    Address address);

}  // namespace ksym
