// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/symbolizer.h"
#include "ksym/tools/filter_markup.h"

namespace ksym {

struct SymbolizeOptions {
  enum class Source : uint8_t {
    kFile,
    kGsym,
    kProcess,
    kKernel,
    kMarkup,
    kProfile,
  };
  enum class Style : uint8_t { kLlvm, kGnu, kJson };

  Source source = Source::kFile;
  std::string file;      // of kFile, kGsym, kProfile; of kKernel if not empty
  bool inlines = false;  // of kFile, kProcess: lines and inlined calls as well
  // How the file of kFile and its debug files are read for `inlines`: mapped
  // where the whole program may end when one of them is truncated meanwhile.
  enum class Reading : uint8_t { kCopy, kMap };
  Reading reading = Reading::kCopy;
  uint32_t pid = 0;  // of kProcess
  SymbolizerOptions::Demangle demangle = SymbolizerOptions::Demangle::kOn;
  Style style = Style::kLlvm;
  bool debuginfod = false;  // fetch debug files, at most so long:
  std::chrono::milliseconds symbol_timeout = std::chrono::seconds(10);
  FilterMarkupOptions markup;       // of kMarkup; its names of kProfile, too
  std::string format = "folded";    // of kProfile
  std::vector<uint64_t> addresses;  // empty: read them from standard input
};

// What a command line asks for: to run with `options`, or to print a text and
// end with a status.
struct ParsedSymbolizeOptions {
  SymbolizeOptions options;
  int exit_status = 0;      // 2: usage error
  std::string output_text;  // for standard output: help or version
  std::string error_text;   // for standard error: one line, without newline
  bool runs() const { return output_text.empty() && error_text.empty(); }
};

// `profile_formats`: what --format takes, "folded|json|...".
ParsedSymbolizeOptions ParseSymbolizeOptions(
    int argc, const char* const* argv, const std::string& profile_formats);

// An address in hexadecimal, with or without 0x.
std::optional<uint64_t> ParseHexAddress(std::string_view text);

}  // namespace ksym
