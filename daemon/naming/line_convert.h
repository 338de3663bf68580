// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ksym/symbolizer.h"

namespace profd {

// The outcome for a program whose debug data were to be made a GSYM file.
struct LineConversion {
  enum class Outcome : uint8_t {
    kMade,
    kGivenUp,  // the caller had no more time
    kBare,     // there are no debug data
    kFailed,   // see error
  };
  Outcome outcome = Outcome::kFailed;
  std::vector<std::byte> bytes;  // of kMade
  // Whether it may be kept under its build-id: all files that it is made of
  // are trusted, and none that it refers to is missing. Others could give a
  // file another's build-id.
  bool can_be_kept = false;
  std::string error;
};

struct LineConvertOptions {
  // Files that are larger are refused: whoever is profiled can have one that is
  // large and empty. So are sections that are larger when they are unpacked.
  uint64_t max_file_bytes = uint64_t{4} << 30;
  // Asked between units; true: give up.
  std::function<bool()> has_to_stop;
};

// Whether what is made of the file may be kept under its build-id
// (ksym::IsOfMachine). Two system calls.
bool IsTrusted(const ksym::ByteSource& source);

// Reads the program's DWARF, or its debug file's. Takes seconds and the memory
// of the DWARF for a large program. Thread-safe.
LineConversion ConvertLines(const ksym::Symbolizer::ProgramFile& program,
                            const LineConvertOptions& options);

}  // namespace profd
