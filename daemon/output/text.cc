// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include "daemon/output/counted_texts.h"
#include "daemon/output/frame_text.h"
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

// Blocks are lists of lines, so their keys sort as they do: no line begins with
// another one.
class TextWriter {
 public:
  TextWriter(const Profile& profile, const OutputOptions& options)
      : profile_(profile), options_(options) {}

  void Run(OutputBuffer& out) {
    MakeLines();
    for (size_t i = 0; i < profile_.samples.size(); ++i) {
      AddBlock(profile_.samples[i], owner_of_sample_[i]);
    }
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
  void MakeLines() {
    frames_.reserve(profile_.frames.size());
    for (const Frame& frame : profile_.frames) {
      frames_.push_back(lines_.Add(FrameLine(profile_, frame, options_)));
    }
    SampleHeads heads;
    owner_of_sample_.reserve(profile_.samples.size());
    for (const ProfileSample& sample : profile_.samples) {
      owner_of_sample_.push_back(heads.Find(sample, [&] {
        return lines_.Add(OwnerLine(profile_, sample, options_.by));
      }));
    }
    for (size_t i = 0; i < marks_.size(); ++i) {
      marks_[i] = lines_.Add(MarkLine(kStackMarks[i]));
    }
    delimiter_ = lines_.Add(MarkLine("--"));
    lines_.Rank();
    for (uint32_t& number : frames_) number = lines_.RankOf(number);
    for (uint32_t& number : owner_of_sample_) number = lines_.RankOf(number);
    for (uint32_t& number : marks_) number = lines_.RankOf(number);
    delimiter_ = lines_.RankOf(delimiter_);
  }

  void AddBlock(const ProfileSample& sample, uint32_t owner) {
    KeyWriter key(lines_.rank_bits(), blocks_.buffer());
    const auto add_stack = [&](StackState state, CallStackId stack,
                               StackOf of) {
      if (!IsMissed(state)) {
        for (const FrameId id : profile_.Stack(stack)) key.Add(frames_[id]);
      }
      if (const auto mark = MarkOf(state, of)) key.Add(marks_[*mark]);
    };
    add_stack(sample.kernel_state, sample.kernel, StackOf::kKernel);
    if (options_.delimiter && HasBothStacks(sample)) key.Add(delimiter_);
    add_stack(sample.user_state, sample.user, StackOf::kUser);
    key.Add(owner);
    key.Finish();
    blocks_.Commit(sample.count);
  }

  const Profile& profile_;
  const OutputOptions& options_;
  // Numbers in lines_, and ranks when these are there.
  std::vector<uint32_t> frames_;           // by FrameId
  std::vector<uint32_t> owner_of_sample_;  // by index of the sample
  std::array<uint32_t, kStackMarks.size()> marks_ = {};
  uint32_t delimiter_ = 0;
  TextPieces lines_;
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
