// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ksym/base/address.h"
#include "ksym/base/file.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_symbol_map.h"

namespace ksym {

// One line of a symbol listing. The views live in the line.
struct KallsymsLine {
  Address address;
  char type = 0;
  std::string_view name;
  std::string_view module;  // without brackets
};

enum class KallsymsLineKind : uint8_t {
  kSymbol,
  kUndefined,  // nm(1) lists a symbol without an address
  kMalformed,
};

// Parses one line, without its newline, of
//   ffffffff81000000 T _stext
//   ffffffffc0555000 t crc32c_impl<TAB>[libcrc32c]
//   0000000000401136 T main(int, char**)
// as /proc/kallsyms, System.map and `nm -n [-C]` write them: 1 to 16
// hexadecimal digits, a space, a printable letter, a space, the name to the
// end of the line or to the tab before `[module]`. On kMalformed *reason says
// what is wrong and *line is unspecified.
KallsymsLineKind ParseKallsymsLine(std::string_view text, KallsymsLine* line,
                                   std::string_view* reason);

// What a listing contained.
struct KallsymsReport {
  uint64_t lines = 0;
  uint64_t symbols = 0;
  uint64_t undefined = 0;
  uint64_t zero_addresses = 0;
  uint64_t malformed = 0;
  uint64_t first_malformed_line = 0;  // counted from 1; 0: none
  std::string first_malformed_reason;
};

// Reads a listing of any size from the descriptor's position to the end and
// calls `symbol` for each one, in the order of the file; malformed lines are
// counted and skipped. Never holds more than a block of 64 KiB (or the longest
// line). Fails with I/O errors and with what `symbol` returns (report.lines is
// then the line's number), and, after the last line,
//   kPermission  every address is zero: the kernel hides them
//   kCorrupt     there are lines, but not one is a symbol
Status ReadKallsyms(int fd, KallsymsReport& report,
                    const std::function<Status(const KallsymsLine&)>& symbol);

// The compact map of a whole listing. An empty one gives an empty map.
// `report` may be null.
Result<KernelSymbolMap> LoadKallsyms(int fd, KallsymsReport* report = nullptr);

// The same, with the text of /proc/modules (which may be empty), so that the
// last symbol of a module ends where the module's memory ends.
Result<KernelSymbolMap> LoadKallsyms(ByteStream& source,
                                     std::string_view modules,
                                     KallsymsReport* report = nullptr);

}  // namespace ksym
