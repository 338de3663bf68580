// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/perf_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/counted_texts.h"
#include "daemon/output/stack_state.h"
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

class Writer {
 public:
  explicit Writer(const Profile& profile) : profile_(profile) {
    frames_.reserve(profile.frames.size());
    for (const Frame& frame : profile.frames) {
      frames_.push_back(FrameLine(profile, frame));
    }
    for (const ProfileSample& sample : profile.samples) AddSample(sample);
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
      const std::string_view text = samples_.Text(entry);
      const size_t end = text.find('\n');
      const uint64_t lines = is_amount_ ? 1 : entry.count;
      const uint64_t period = is_amount_ ? entry.count : Period();
      for (uint64_t i = 0; i < lines; ++i) {
        fmt::format_to(std::back_inserter(out.text()),
                       "{} {}.{:06}: {:10} {}: \n{}\n", text.substr(0, end),
                       time_us / kUsPerSecond, time_us % kUsPerSecond, period,
                       event, text.substr(end + 1));
        out.PassOn();
        time_us += std::max(step_us, uint64_t{1});
      }
    }
  }

 private:
  // Up to the time, a newline, and the frames.
  void AddSample(const ProfileSample& sample) {
    std::string& text = samples_.buffer();
    AppendCommand(profile_.String(sample.comm), text);
    fmt::format_to(std::back_inserter(text), " {}/{}\n", sample.pid,
                   sample.tid != 0 ? sample.tid : sample.pid);
    AppendStack(sample.kernel_state, sample.kernel, StackOf::kKernel, text);
    AppendStack(sample.user_state, sample.user, StackOf::kUser, text);
    samples_.Commit(sample.count);
  }

  void AppendStack(StackState state, CallStackId stack, StackOf of,
                   std::string& text) const {
    if (!IsMissed(state)) {
      for (const FrameId frame : profile_.Stack(stack)) text += frames_[frame];
    }
    if (const auto mark = MarkOf(state, of)) {
      text += MarkLine(kStackMarks[*mark]);
    }
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
  std::vector<std::string> frames_;  // by FrameId: their lines
  CountedTexts samples_;
};

}  // namespace

void WritePerfScript(const Profile& profile, const OutputOptions& /*options*/,
                     OutputBuffer& out) {
  Writer(profile).Run(out);
}

}  // namespace profd
