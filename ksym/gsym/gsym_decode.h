// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/function_batch.h"
#include "ksym/base/result.h"
#include "ksym/gsym/gsym_file.h"

namespace ksym {

// A call, and what it may call: patterns (regular expressions) of names.
struct GsymCallSite {
  uint64_t return_offset = 0;  // from the function's start
  uint8_t flags = 0;           // 1: within the file, 2: out of it
  std::vector<std::string_view> patterns;
};

// All that a file has on one function. Views of the file.
struct GsymFunction {
  ElfAddress start;
  uint64_t size = 0;  // 0: not known
  std::string_view name;
  std::vector<LineRow> lines;
  std::vector<InlinedCall> inlines;  // without the function's own node
  std::vector<AddressRange> ranges;  // what the inlined calls refer to
  std::vector<GsymCallSite> call_sites;
  std::vector<GsymFunction> merged;  // that have the same code
  uint32_t unknown_infos = 0;        // of types that are not known here
};

// Decodes one function whole. kCorrupt where the file contradicts itself: also
// an inlined call that its parent does not contain. Cost: time and memory in
// proportion to the function's bytes.
Result<GsymFunction> DecodeGsymFunction(const GsymFile& file, uint32_t index);

}  // namespace ksym
