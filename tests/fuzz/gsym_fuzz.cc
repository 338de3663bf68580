// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GSYM file of either version: rejected, or every lookup and
// decoding ends within them, a lookup agrees with the address table, and one
// with an index says the same.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ksym/gsym/gsym_decode.h"
#include "ksym/gsym/gsym_file.h"
#include "ksym/gsym/gsym_index.h"
#include "ksym/gsym/gsym_lookup.h"

namespace {

void Check(bool ok) {
  if (!ok) std::abort();
}

bool IsSame(const ksym::GsymFrame& a, const ksym::GsymFrame& b) {
  return a.function == b.function && a.offset == b.offset &&
         a.directory == b.directory && a.file == b.file && a.line == b.line;
}

void LookUp(const ksym::GsymFile& file, ksym::ElfAddress address,
            ksym::GsymIndex& index) {
  ksym::GsymAnswer answer;
  const auto found = ksym::LookupGsym(file, address, answer);
  ksym::GsymAnswer indexed;
  // An index is made at the second lookup and used from then on.
  for (int i = 0; i < 3; ++i) {
    const auto again = ksym::LookupGsym(file, address, index, indexed);
    Check(again.has_value() == found.has_value());
    if (!found) continue;
    Check(*again == *found);
    Check(std::ranges::equal(answer.frames, indexed.frames, IsSame));
  }
  if (!found || !*found) return;
  Check(!answer.frames.empty());
  Check(answer.start <= address);
  Check(answer.size == 0 || address - answer.start < answer.size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = ksym::GsymFile::Parse(std::as_bytes(std::span(data, size)));
  if (!file) return 0;
  constexpr uint32_t kFunctions = 32;
  const uint32_t step = file->function_count() / kFunctions + 1;
  ksym::GsymIndex index(*file, ksym::GsymIndex::kDefaultBytes, 0);
  for (uint32_t i = 0; i < file->function_count(); i += step) {
    const ksym::ElfAddress start = file->FunctionStart(i);
    for (const uint64_t offset : {0, 1, 4, 15, 60, 250}) {
      LookUp(*file, start + offset, index);
    }
    static_cast<void>(ksym::DecodeGsymFunction(*file, i));
  }
  LookUp(*file, {0}, index);
  LookUp(*file, {~uint64_t{0}}, index);
  return 0;
}
