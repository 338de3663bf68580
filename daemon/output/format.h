// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/output/format_table.h"
#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// The format of that name (FormatRow::name); anything else is kInvalid and the
// message lists the formats there are.
ksym::Result<OutputFormat> ParseOutputFormat(std::string_view name);

// What the end of a file's name says (FormatRow::extensions); else nothing.
std::optional<OutputFormat> FormatOfExtension(std::string_view path);

// Makes ready what a format shows of the kinds of samples: the one of that name
// (--value) first, and alone where the format shows one or its reader would
// choose. The empty name chooses the first, or the sum of all where the format
// shows one and they are states of threads. Fails as KnowsKind() does.
// O(samples).
[[nodiscard]] ksym::Status ChooseKind(std::string_view name,
                                      const FormatRow& format,
                                      Profile& profile);

// Whether the stacks of parked threads are shown as others are (--parked).
enum class ParkedStacks : uint8_t { kFolded, kOpen };

// Makes ready what a format shows of samples that are marked as parked (see
// MarkParked()), by its FormatRow::parked. Marks stay where the format writes
// them or has the stacks below a frame that opens. O(samples).
void ArrangeParked(ParkedStacks stacks, const FormatRow& format,
                   Profile& profile);

// Writes the profile in a format, be it one of FormatRows() or not; see the
// function of each. Formats without kinds show the first one, of a copy where
// there are several. Fails as the sink does. Memory: folded, text and JSON some
// bits per frame of every stack; pprof and flame graph the result and about as
// much again.
[[nodiscard]] ksym::Status Write(const Profile& profile,
                                 const FormatRow& format,
                                 const OutputOptions& options,
                                 OutputBuffer::Sink sink);
[[nodiscard]] inline ksym::Status Write(const Profile& profile,
                                        OutputFormat format,
                                        const OutputOptions& options,
                                        OutputBuffer::Sink sink) {
  return Write(profile, RowOf(format), options, std::move(sink));
}

// What a program that goes on makes of one profile at the most: names that
// anyone chooses stand in some formats once for each frame that has them.
inline constexpr size_t kMaxRenderedBytes = size_t{64} << 20;

// The same as one text. Fails with kLimit where it would have more than
// `max_bytes`, soon after it has.
ksym::Result<std::string> RenderWithin(size_t max_bytes, const Profile& profile,
                                       OutputFormat format,
                                       const OutputOptions& options);

// The same without a bound.
std::string Render(const Profile& profile, const FormatRow& format,
                   const OutputOptions& options);
inline std::string Render(const Profile& profile, OutputFormat format,
                          const OutputOptions& options) {
  return Render(profile, RowOf(format), options);
}

}  // namespace profd
