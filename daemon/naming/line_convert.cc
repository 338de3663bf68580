// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/line_convert.h"

#include <unistd.h>

#include <utility>

#include "ksym/base/trust.h"
#include "ksym/gsym_convert.h"

namespace profd {
namespace {

using Outcome = LineConversion::Outcome;

// Refuses files that are too large; `all_trusted` becomes false when one is
// opened that is not.
ksym::DebugFileFinder Checked(ksym::DebugFileFinder finder, uint64_t max_bytes,
                              bool& all_trusted) {
  const auto checked = [&all_trusted, max_bytes](auto open) {
    return [&all_trusted, max_bytes, open = std::move(open)](
               const std::string& path) -> ksym::Result<ksym::ByteSource> {
      auto source = open(path);
      if (source && source->size() > max_bytes) {
        return ksym::Fail(ksym::ErrorCode::kLimit, path + ": too large");
      }
      if (source && !IsTrusted(*source)) all_trusted = false;
      return source;
    };
  };
  if (finder.open) finder.open = checked(std::move(finder.open));
  if (finder.fetch) finder.fetch = checked(std::move(finder.fetch));
  return finder;
}

}  // namespace

bool IsTrusted(const ksym::ByteSource& source) {
  const auto owner = source.owner();
  return owner && IsOfMachine(*owner, ::geteuid());
}

LineConversion ConvertLines(const ksym::Symbolizer::ProgramFile& program,
                            const LineConvertOptions& options) {
  LineConversion conversion;
  if (program.source.size() > options.max_file_bytes) {
    conversion.error = "too large";
    return conversion;
  }
  bool is_trusted = IsTrusted(program.source);
  // Asked before the first unit as well: reading the headers takes time.
  bool is_given_up = options.has_to_stop();
  if (is_given_up) {
    conversion.outcome = Outcome::kGivenUp;
    return conversion;
  }
  ksym::GsymConvertOptions convert;
  convert.max_section_bytes = options.max_file_bytes;
  convert.runner = [&](const ksym::UnitWork& work) {
    ksym::UnitFunctions unit;
    for (size_t i = 0; i < work.unit_count; ++i) {
      is_given_up = is_given_up || options.has_to_stop();
      if (is_given_up) return;
      work.read(i, unit);
      work.add(unit);
    }
  };
  auto made = ksym::ConvertElfToGsym(
      program.source,
      Checked(program.finder, options.max_file_bytes, is_trusted), convert);
  if (is_given_up) {
    conversion.outcome = Outcome::kGivenUp;
  } else if (made ? !made->has_dwarf
                  : made.error().code() == ksym::ErrorCode::kNotFound) {
    conversion.outcome = Outcome::kBare;
  } else if (!made) {
    conversion.error = made.error().message();
  } else {
    conversion.outcome = Outcome::kMade;
    conversion.bytes = std::move(made->bytes);
    // Lines that lack files which may be there the next time are not kept.
    conversion.can_be_kept = is_trusted && made->dwarf_losses.split_files == 0;
  }
  return conversion;
}

}  // namespace profd
