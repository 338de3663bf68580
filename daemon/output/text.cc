// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "daemon/output/counted_texts.h"
#include "daemon/output/frame_text.h"
#include "daemon/output/sample_lines.h"
#include "daemon/output/stack_state.h"
#include "daemon/output/text_pieces.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr std::string_view kIndent = "    ";

std::string FrameLine(const Profile& profile, const Frame& frame,
                      const OutputOptions& options) {
  std::string line(kIndent);
  const auto end = std::back_inserter(line);
  if (options.addresses && frame.kind->is_kernel) {
    fmt::format_to(end, "0x{:<16x} ", frame.address);
  } else if (options.addresses) {
    fmt::format_to(end, "0x{:016x} ", frame.address);
  }
  AppendFrameName(profile, frame, line);
  if (frame.reason == ksym::Unresolved::kNone && frame.kind->has_offsets) {
    fmt::format_to(end, "+0x{:x}", frame.symbol_offset);
  }
  AppendFrameModule(profile, frame, line);
  if (frame.kind->is_inlined) line += " (inlined)";
  if (frame.file != 0) {
    line += ' ';
    ksym::AppendPrintable(profile.String(frame.file), line);
    fmt::format_to(end, ":{}", frame.line);
  }
  line += '\n';
  return line;
}

// "comm (pid)", the last line of a block.
std::string OwnerLine(const Profile& profile, const ProfileSample& sample,
                      OutputOptions::By by) {
  std::string line = fmt::format("{}{:<16} ", kIndent, "-");
  ksym::AppendPrintable(profile.String(sample.comm), line);
  fmt::format_to(std::back_inserter(line), " ({})\n",
                 by == OutputOptions::By::kTid ? sample.tid : sample.pid);
  return line;
}

std::string MarkLine(std::string_view mark) {
  return fmt::format("{}{}\n", kIndent, mark);
}

// Blocks are lists of lines, so their keys sort as they do.
class TextWriter {
 public:
  TextWriter(const Profile& profile, const OutputOptions& options)
      : profile_(profile),
        options_(options),
        lines_(profile, {.frame =
                             [&](const Frame& frame) {
                               return FrameLine(profile, frame, options);
                             },
                         .head =
                             [&](const ProfileSample& sample) {
                               return OwnerLine(profile, sample, options.by);
                             },
                         .mark = MarkLine}) {}

  void Run(OutputBuffer& out) {
    for (size_t i = 0; i < profile_.samples.size(); ++i) AddBlock(i);
    blocks_.SortAndMerge();
    std::ranges::stable_sort(blocks_.entries(), {},
                             &CountedTexts::Entry::count);
    for (const CountedTexts::Entry& entry : blocks_.entries()) {
      KeyReader key(lines_.rank_bits(), blocks_.Text(entry));
      while (const uint32_t rank = key.Next()) out.text() += lines_.Text(rank);
      fmt::format_to(std::back_inserter(out.text()), "        {}\n\n",
                     entry.count);
      if (!out.PassOn()) return;
    }
  }

 private:
  void AddBlock(size_t index) {
    const ProfileSample& sample = profile_.samples[index];
    KeyWriter key(lines_.rank_bits(), blocks_.buffer());
    lines_.AddStack(sample, StackOf::kKernel, key);
    if (options_.delimiter && HasBothStacks(sample)) {
      key.Add(lines_.delimiter());
    }
    lines_.AddStack(sample, StackOf::kUser, key);
    key.Add(lines_.HeadOf(index));
    key.Finish();
    blocks_.Commit(sample.count);
  }

  const Profile& profile_;
  const OutputOptions& options_;
  SampleLines lines_;
  CountedTexts blocks_;
};

}  // namespace

void WriteText(const Profile& profile, const OutputOptions& options,
               OutputBuffer& out) {
  TextWriter(profile, options).Run(out);
}

std::string TextHeader(const TextHeaderOptions& options) {
  std::string line = "Sampling at ";
  const auto end = std::back_inserter(line);
  if (options.frequency_hz != 0) {
    fmt::format_to(end, "{} Hertz", options.frequency_hz);
  } else {
    fmt::format_to(end, "every {} events", options.count_period);
  }
  if (!options.pids.empty()) {
    fmt::format_to(end, " of PID [{}]", fmt::join(options.pids, ", "));
  } else if (!options.tids.empty()) {
    fmt::format_to(end, " of TID [{}]", fmt::join(options.tids, ", "));
  } else {
    line += " of all threads";
  }
  if (!options.filter.empty()) line += " in " + options.filter;
  switch (options.stacks) {
    case TextHeaderOptions::Stacks::kUserAndKernel:
      line += " by user + kernel stack";
      break;
    case TextHeaderOptions::Stacks::kUser:
      line += " by user stack";
      break;
    case TextHeaderOptions::Stacks::kKernel:
      line += " by kernel stack";
      break;
  }
  if (!options.cpus.empty()) fmt::format_to(end, " on CPU#{}", options.cpus);
  if (options.duration_seconds) {
    fmt::format_to(end, " for {:g} secs.\n", *options.duration_seconds);
  } else {
    line += "... Hit Ctrl-C to end.\n";
  }
  return line;
}

}  // namespace profd
