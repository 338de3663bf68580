// SPDX-License-Identifier: Apache-2.0
// Any text as a Breakpad symbol file: refused, or converted to a GSYM file that
// is whole, whose every function can be decoded and looked up.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "ksym/gsym/gsym_decode.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Without the first line's beginning nothing else would be reached.
  const std::string text =
      "MODULE " + std::string(reinterpret_cast<const char*>(data), size);
  ksym::GsymConvertOptions options;
  if (size % 2 == 1) options.file.version = ksym::GsymVersion::k2;
  const auto made = ksym::ConvertBreakpadToGsym(text, options);
  if (!made) return 0;
  const auto file = ksym::GsymFile::Parse(made->bytes);
  if (!file) std::abort();
  ksym::GsymAnswer answer;
  for (uint32_t i = 0; i < file->function_count(); ++i) {
    if (!ksym::DecodeGsymFunction(*file, i)) std::abort();
    const auto found = ksym::LookupGsym(*file, file->FunctionStart(i), answer);
    if (!found || !*found) std::abort();
  }
  return 0;
}
