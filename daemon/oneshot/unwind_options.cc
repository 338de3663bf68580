// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/unwind_options.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

#include "daemon/capture/bpf_config.h"

namespace profd {
namespace {

constexpr uint64_t kMaxMemoryMb = 16 << 10;

}  // namespace

std::string CacheDirectory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string parent;
  // Relative ones are to be ignored (XDG Base Directory Specification).
  if (cache != nullptr && cache[0] == '/') {
    parent = cache;
  } else if (home != nullptr && home[0] == '/') {
    parent = std::string(home) + "/.cache";
  } else {
    return {};
  }
  // It may be there; what cannot be made cannot be opened either.
  ::mkdir(parent.c_str(), 0700);
  return parent + "/ksym";
}

void UnwindOptions::AddTo(CLI::App& app) {
  app.add_option("--unwind", unwind_,
                 "How user stacks are walked: dwarf (by the call-frame "
                 "information of programs), fp (by frame pointers), none (the "
                 "innermost frame), or auto: dwarf, and fp where there is no "
                 "such information")
      ->type_name("auto|dwarf|fp|none");
  app.add_option("--unwind-memory", memory_mb_,
                 "MB of kernel memory for unwind tables (default 256)")
      ->type_name("MB");
  // For tests: what is chosen by what the kernel can do.
  app.add_option("--unwind-program", program_, "auto, loop or steps")
      ->group("");
}

std::optional<std::string> UnwindOptions::Apply(CaptureOptions& capture) const {
  const auto unwind = ParseUnwind(unwind_);
  if (!unwind) {
    return fmt::format("--unwind '{}' is none of auto, dwarf, fp, none",
                       unwind_);
  }
  capture.unwind = *unwind;
  if (memory_mb_ == 0 || memory_mb_ > kMaxMemoryMb) {
    return fmt::format("--unwind-memory must be from 1 to {}", kMaxMemoryMb);
  }
  capture.bpf.unwind_bytes = memory_mb_ << 20;
  if (program_ == "loop") {
    capture.table_walk = TableWalk::kLoop;
  } else if (program_ == "steps") {
    capture.table_walk = TableWalk::kSteps;
  } else if (program_ != "auto") {
    return fmt::format("--unwind-program '{}' is none of auto, loop, steps",
                       program_);
  }
  if (capture.unwind == Unwind::kTables &&
      capture.store == StackStore::kStackId) {
    return "--unwind dwarf and --stack-map=stackid contradict each other";
  }
  return std::nullopt;
}

}  // namespace profd
