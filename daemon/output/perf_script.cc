// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/perf_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "daemon/output/counted_texts.h"
#include "daemon/output/sample_lines.h"
#include "daemon/output/stack_state.h"
#include "daemon/output/text_pieces.h"
#include "daemon/profile/profile_terms.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr uint64_t kNsPerUs = 1000;
constexpr uint64_t kUsPerSecond = 1'000'000;

// Readers take a name in parentheses up to the first space or parenthesis.
void AppendModule(const Profile& profile, const Frame& frame,
                  std::string& out) {
  const std::string_view module = profile.String(frame.object);
  std::string text;
  if (frame.function != 0) {
    ksym::AppendPrintable(profile.String(frame.file), text);
  } else if (!frame.kind->perf_module.empty()) {
    text = frame.kind->perf_module;
  } else if (module.empty()) {
    text = "[unknown]";
  } else if (module == "[kernel]" && !frame.kind->image.empty()) {
    text = frame.kind->image;
  } else {
    ksym::AppendPrintable(module, text);
    if (module.ends_with(']')) text += frame.kind->perf_suffix;
  }
  std::ranges::replace_if(
      text, [](char c) { return c == ' ' || c == '(' || c == ')'; }, '_');
  fmt::format_to(std::back_inserter(out), " ({})", text);
}

// Readers pass over names in parentheses, which were process names once, and
// so over "(anonymous namespace)::Run()"; its global name is not one.
void AppendName(std::string_view name, std::string& out) {
  if (name.starts_with('(')) out += "::";
  ksym::AppendPrintable(name, out);
}

// A line that begins with a space is a frame for readers, and one with '#' a
// comment.
void AppendCommand(std::string_view comm, std::string& out) {
  const size_t start = out.size();
  ksym::AppendPrintable(comm.empty() ? "[unknown]" : comm, out);
  if (out[start] == ' ' || out[start] == '#') out[start] = '_';
}

std::string FrameLine(const Profile& profile, const Frame& frame) {
  uint64_t address = frame.address;
  // What a kernel frame has there is of use to those who look its line up.
  if (address == 0 && frame.kind->is_in_file) {
    address = frame.file_offset;
  }
  std::string line = fmt::format("\t{:16x} ", address);
  if (frame.reason == ksym::Unresolved::kNone) {
    AppendName(
        profile.String(frame.function != 0 ? frame.function : frame.name),
        line);
    if (!frame.kind->is_inlined && frame.kind->has_offsets) {
      fmt::format_to(std::back_inserter(line), "+0x{:x}", frame.symbol_offset);
    }
  } else {
    line += "[unknown]";
  }
  AppendModule(profile, frame, line);
  return line + '\n';
}

std::string MarkLine(std::string_view mark) {
  return fmt::format("\t{:16x} {} ([unknown])\n", 0, mark);
}

// The first line of a sample up to the time.
std::string HeadLine(const Profile& profile, const ProfileSample& sample) {
  std::string line;
  AppendCommand(profile.String(sample.comm), line);
  fmt::format_to(std::back_inserter(line), " {}/{}\n", sample.pid,
                 sample.tid != 0 ? sample.tid : sample.pid);
  return line;
}

// Samples become lists of lines, so their keys sort as they do.
class Writer {
 public:
  explicit Writer(const Profile& profile)
      : profile_(profile),
        lines_(profile, {.frame =
                             [&](const Frame& frame) {
                               return FrameLine(profile, frame);
                             },
                         .head =
                             [&](const ProfileSample& sample) {
                               return HeadLine(profile, sample);
                             },
                         .mark = MarkLine}) {
    for (size_t i = 0; i < profile.samples.size(); ++i) AddSample(i);
    samples_.SortAndMerge();
  }

  void Run(OutputBuffer& out) const {
    const CaptureMetadata& metadata = profile_.metadata;
    std::string event = ksym::Printable(metadata.kinds.front().event);
    std::ranges::replace(event, ' ', '_');
    if (event.empty()) event = "samples";
    const uint64_t step_us =
        metadata.duration_ns / kNsPerUs / std::max(CountWritten(), uint64_t{1});
    uint64_t time_us = metadata.start_unix_ns / kNsPerUs;
    for (const CountedTexts::Entry& entry : samples_.entries()) {
      KeyReader key(lines_.rank_bits(), samples_.Text(entry));
      std::string_view head = lines_.Text(key.Next());
      head.remove_suffix(1);
      std::string frames;
      while (const uint32_t rank = key.Next()) frames += lines_.Text(rank);
      const uint64_t lines = is_amount_ ? 1 : entry.count;
      const uint64_t period = is_amount_ ? entry.count : Period();
      for (uint64_t i = 0; i < lines; ++i) {
        fmt::format_to(std::back_inserter(out.text()),
                       "{} {}.{:06}: {:10} {}: \n{}\n", head,
                       time_us / kUsPerSecond, time_us % kUsPerSecond, period,
                       event, frames);
        if (!out.PassOn()) return;
        time_us += std::max(step_us, uint64_t{1});
      }
    }
  }

 private:
  // Up to the time, and then the frames.
  void AddSample(size_t index) {
    const ProfileSample& sample = profile_.samples[index];
    KeyWriter key(lines_.rank_bits(), samples_.buffer());
    key.Add(lines_.HeadOf(index));
    lines_.AddStack(sample, StackOf::kKernel, key);
    lines_.AddStack(sample, StackOf::kUser, key);
    key.Finish();
    samples_.Commit(sample.count);
  }

  // Samples that are written, among which the time is shared out.
  uint64_t CountWritten() const {
    if (is_amount_) return samples_.entries().size();
    uint64_t total = 0;
    for (const auto& entry : samples_.entries()) total += entry.count;
    return total;
  }

  uint64_t Period() const {
    return UnitsPerSample(profile_.metadata.kinds.front());
  }

  const Profile& profile_;
  // Then a stack is one sample with the amount as its period: one for each byte
  // or nanosecond would be billions.
  const bool is_amount_ = profile_.metadata.kinds.front().has_values;
  SampleLines lines_;
  CountedTexts samples_;
};

}  // namespace

void WritePerfScript(const Profile& profile, const OutputOptions& /*options*/,
                     OutputBuffer& out) {
  Writer(profile).Run(out);
}

}  // namespace profd
