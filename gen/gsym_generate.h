// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "gen/gsym_options.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/debug_file.h"

namespace gen {

// Opens a regular file to read it with pread. kInvalid: it is none.
ksym::Result<ksym::ByteSource> OpenSource(const std::string& path);
// Whether it is a Breakpad symbol file; at most so much of one is read.
bool IsBreakpad(const ksym::ByteSource& source);
inline constexpr size_t kMaxBreakpadBytes = size_t{4} << 30;
// Finds the debug files of the program at `path`, on this machine, that may
// name its code.
ksym::DebugFileFinder FinderFor(const std::string& path,
                                const ksym::ByteSource& program);

// Converts options.input and writes options.output, whole or not at all. What
// is lost on the way is said through `warn`, one line each; `progress` as
// RunUnitsOnThreads has it.
struct GenerateHooks {
  std::function<void(std::string_view line)> warn;
  std::function<void(size_t done, size_t all)> progress;
};
ksym::Status GenerateGsymFile(const GsymOptions& options,
                              const GenerateHooks& hooks);

}  // namespace gen
