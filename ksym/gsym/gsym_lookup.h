// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/gsym/gsym_file.h"

namespace ksym {

class GsymIndex;

// A function, or code that was inlined into one. Views of the GSYM file.
struct GsymFrame {
  std::string_view function;
  uint64_t offset = 0;  // bytes from its start, or from its first range's
  // Where this frame's code is, or for the callers of inlined code the call;
  // empty and 0 when not known.
  std::string_view directory = {};
  std::string_view file = {};
  uint32_t line = 0;
};

// The same by its place in the file's tables, for callers that keep texts of
// their own.
struct GsymFrameRef {
  static constexpr uint32_t kNoFile = ~uint32_t{0};

  uint64_t function = 0;  // a string's offset
  uint64_t offset = 0;
  uint32_t file = kNoFile;
  uint32_t line = 0;

  bool operator==(const GsymFrameRef&) const = default;
};

// Everything that a file has on one address.
struct GsymAnswer {
  ElfAddress start;   // the function's
  uint64_t size = 0;  // 0: not known
  // Innermost first; the last one is the function itself.
  std::vector<GsymFrame> frames;
  std::vector<GsymFrameRef> refs;  // as many, of the same
  // Where the address is a call's return address: patterns of what that call
  // may call, if the file says so.
  std::vector<std::string_view> call_patterns;
  // How many more functions have this very code: the name is one of several.
  uint32_t merged_functions = 0;
};

// Finds the function that covers the address, its line and the whole chain of
// inlined calls. False when no function does. A function without lines for the
// address has one frame, without a file. kCorrupt: the file contradicts itself
// there. `answer` is overwritten and keeps its memory; its views live as long
// as the file's bytes. Thread-safe. O(log functions + size of the function's
// information).
Result<bool> LookupGsym(const GsymFile& file, ElfAddress address,
                        GsymAnswer& answer);

// The same with an index of that file's functions, for many lookups in one
// file: O(log functions + log size of the function's information) once there
// was one in that function. Not thread-safe, as the index is not.
Result<bool> LookupGsym(const GsymFile& file, ElfAddress address,
                        GsymIndex& index, GsymAnswer& answer);

// As this, but leaves `frames` empty. All of `refs` are in the file's tables.
Result<bool> LookupGsymRefs(const GsymFile& file, ElfAddress address,
                            GsymIndex& index, GsymAnswer& answer);

}  // namespace ksym
