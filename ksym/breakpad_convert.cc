// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ksym/breakpad/breakpad_file.h"
#include "ksym/gsym_convert.h"

namespace ksym {

BreakpadReadOptions BreakpadOptionsOf(const DwarfReadOptions& options) {
  BreakpadReadOptions made;
  if (options.lines == DwarfReadOptions::Lines::kSkip) {
    made.lines = BreakpadReadOptions::Lines::kSkip;
  }
  if (options.inlines == DwarfReadOptions::Inlines::kSkip) {
    made.inlines = BreakpadReadOptions::Inlines::kSkip;
  }
  return made;
}

Result<GsymConversion> ConvertBreakpadToGsym(
    std::string_view text, const GsymConvertOptions& options) {
  auto symbols = BreakpadFile::Parse(text);
  if (!symbols) return Fail(std::move(symbols.error()));
  GsymConversion conversion;
  GsymWriter writer(options.file);
  symbols->ForEachBatch(BreakpadOptionsOf(options.dwarf),
                        [&](const FunctionBatch& batch) { writer.Add(batch); });
  // Only now: lines are read, and lost, as the batches are made.
  conversion.breakpad_losses = symbols->losses();
  if (writer.function_count() == 0) {
    return Fail(ErrorCode::kNotFound, "no FUNC and no PUBLIC line");
  }
  auto status = conversion.Finish(std::move(writer), symbols->build_id());
  if (!status) return Fail(std::move(status.error()));
  return conversion;
}

}  // namespace ksym
