// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/own_priority.h"
#include "daemon/capture/capture.h"
#include "daemon/output/format.h"
#include "daemon/output/options.h"

namespace profd {

// The frames that are shown where a language runtime has its own.
enum class RuntimeFrames : uint8_t {
  kMerged,  // those, in place of the native frame that works through them
  kAll,     // both
};

// Everything that ksym-profile was asked for.
struct ProfileOptions {
  CaptureOptions capture;
  std::optional<std::chrono::duration<double>> duration;  // none: until Ctrl-C
  std::vector<std::string> command;  // to run and profile; empty: none

  OutputFormat format = OutputFormat::kFolded;
  // Neither a file nor a format was given: at a terminal a table is shown.
  bool is_format_open = false;
  // Instead of that: a log with symbolizer markup; nothing is named.
  bool markup = false;
  OutputOptions output;
  std::string value;    // the kind of samples that is shown; empty: the first
  bool parked = false;  // show where parked threads wait
  std::string output_path;  // empty or "-": stdout
  bool open = false;        // show it when it is there
  std::string raw_path;     // where the raw profile goes; empty: nowhere
  std::string replay_path;  // a raw profile instead of a capture
  std::string kernel_symbols_path;

  RuntimeFrames runtime_frames = RuntimeFrames::kMerged;
  bool demangle = true;
  bool inlines = false;     // frames for inlined calls
  bool lines = false;       // source files and lines
  bool debuginfod = false;  // fetch debug files, at most so long:
  std::chrono::milliseconds symbol_timeout = std::chrono::seconds(10);
  uint64_t symbol_cache_bytes = uint64_t{256} << 20;
  OwnPriority own_priority = OwnPriority::kAuto;
  bool quiet = false;
  bool verbose = false;
  bool strict = false;
};

// What the command line came to: options, or a text to print and a status to
// exit with.
struct ParsedCommandLine {
  std::optional<ProfileOptions> options;
  int exit_status = 0;
  std::string output_text;  // for stdout: --help, --version
  std::string error_text;   // for PrintMessage: one line, without prefix
};

// Parses ksym-profile's arguments. Checks everything that can be checked
// without touching the system; usage errors have exit_status 2.
ParsedCommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace profd
