// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ELF file with debug data: refused, or converted to a GSYM
// file that is whole, whose every function can be decoded and looked up; and
// looked up in as it is.

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "ksym/dwarf/dwarf_places.h"
#include "ksym/elf/elf_image.h"
#include "ksym/gsym/gsym_decode.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"

namespace {

// At some addresses of each segment, twice, as a unit that was read is kept.
void FindPlaces(const ksym::ByteSource& source) {
  constexpr uint64_t kStep = 7;
  constexpr uint64_t kMaxPerSegment = 512;
  const auto image = ksym::ElfImage::Parse(source);
  if (!image) return;
  auto places = ksym::DwarfPlaces::Open(source, *image, {});
  if (!places) return;
  std::vector<ksym::DwarfPlace> found;
  for (const ksym::ElfSegment& segment : image->segments()) {
    for (uint64_t i = 0; i < kMaxPerSegment; ++i) {
      places->Find({segment.address.value + i * kStep}, found);
      const size_t count = found.size();
      places->Find({segment.address.value + i * kStep}, found);
      if (found.size() != count) std::abort();
    }
  }
}

// What an excerpt answers need not be what all functions do where debug data
// contradict themselves, but it is a whole file.
void ConvertSome(const ksym::ByteSource& source,
                 const std::vector<uint64_t>& addresses) {
  auto functions = ksym::ElfFunctions::Open(source, {});
  if (!functions || addresses.empty()) return;
  const auto made = ksym::ConvertExcerptToGsym(
      *functions, addresses, std::numeric_limits<uint64_t>::max());
  if (made && !ksym::GsymFile::Parse(made->bytes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto source = ksym::ByteSource::OfMemory(
      std::string(reinterpret_cast<const char*>(data), size));
  FindPlaces(source);
  ksym::GsymConvertOptions options;
  if (size % 2 == 1) options.file.version = ksym::GsymVersion::k2;
  const auto made = ksym::ConvertElfToGsym(source, {}, options);
  if (!made) return 0;
  const auto file = ksym::GsymFile::Parse(made->bytes);
  if (!file) std::abort();
  ksym::GsymAnswer answer;
  std::vector<uint64_t> starts;
  for (uint32_t i = 0; i < file->function_count(); ++i) {
    if (!ksym::DecodeGsymFunction(*file, i)) std::abort();
    const auto found = ksym::LookupGsym(*file, file->FunctionStart(i), answer);
    if (!found || !*found) std::abort();
    if (i % 3 == 0) starts.push_back(answer.start.value);
  }
  ConvertSome(source, starts);
  return 0;
}
