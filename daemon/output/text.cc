#include "daemon/output/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "daemon/output/counted_texts.h"
#include "daemon/output/safe_name.h"
#include "daemon/output/stack_state.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr std::string_view kIndent = "    ";

// A name that starts with spaces could be read as a line of another kind.
void AppendLineName(std::string_view name, std::string& out) {
  const size_t spaces = std::min(name.find_first_not_of(' '), name.size());
  out.append(spaces, '_');
  ksym::AppendPrintable(name.substr(spaces), out);
}

// Of a path its last part; the kernel's modules have their brackets already.
void AppendModule(const Frame& frame, std::string_view module,
                  std::string& out) {
  if (module.empty()) return;
  out += ' ';
  if (frame.kind == FrameKind::kKernel) {
    ksym::AppendPrintable(module, out);
    return;
  }
  out += '[';
  ksym::AppendPrintable(module.substr(module.rfind('/') + 1), out);
  out += ']';
}

std::string FrameLine(const Profile& profile, const Frame& frame,
                      const OutputOptions& options) {
  std::string line(kIndent);
  const auto end = std::back_inserter(line);
  if (options.addresses && frame.kind == FrameKind::kKernel) {
    fmt::format_to(end, "0x{:<16x} ", frame.address);
  } else if (options.addresses) {
    fmt::format_to(end, "0x{:016x} ", frame.address);
  }
  const std::string_view name = profile.String(frame.name);
  AppendLineName(name.empty() ? "[unknown]" : name, line);
  const bool is_named = frame.reason == ksym::Unresolved::kNone;
  if (is_named) fmt::format_to(end, "+0x{:x}", frame.symbol_offset);
  if (is_named || name.empty() || name == "[unknown]") {
    AppendModule(frame, profile.String(frame.module), line);
  }
  if (frame.inlined) line += " (inlined)";
  if (frame.file != 0) {
    line += ' ';
    ksym::AppendPrintable(profile.String(frame.file), line);
    fmt::format_to(end, ":{}", frame.line);
  }
  line += '\n';
  return line;
}

}  // namespace

std::string RenderText(const Profile& profile, const OutputOptions& options) {
  std::vector<std::string> lines;
  lines.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    lines.push_back(FrameLine(profile, frame, options));
  }
  CountedTexts blocks;
  std::string& out = blocks.buffer();
  const auto append_stack = [&](StackState state, CallStackId stack,
                                std::string_view missed) {
    if (IsMissed(state)) {
      fmt::format_to(std::back_inserter(out), "{}{}\n", kIndent, missed);
      return;
    }
    for (const FrameId frame : profile.Stack(stack)) out += lines[frame];
    if (LacksRoot(state)) {
      fmt::format_to(std::back_inserter(out), "{}{}\n", kIndent,
                     kTruncatedMark);
    }
  };
  for (const ProfileSample& sample : profile.samples) {
    append_stack(sample.kernel_state, sample.kernel, kMissedKernelStack);
    if (options.delimiter && HasBothStacks(sample)) out += "    --\n";
    append_stack(sample.user_state, sample.user, kMissedUserStack);
    fmt::format_to(std::back_inserter(out), "{}{:<16} ", kIndent, "-");
    ksym::AppendPrintable(profile.String(sample.comm), out);
    fmt::format_to(
        std::back_inserter(out), " ({})\n",
        options.by == OutputOptions::By::kTid ? sample.tid : sample.pid);
    blocks.Commit(sample.count);
  }
  blocks.SortAndMerge();
  std::ranges::stable_sort(blocks.entries(), {}, &CountedTexts::Entry::count);
  std::string result;
  result.reserve(blocks.text_bytes() + blocks.entries().size() * 16);
  for (const CountedTexts::Entry& entry : blocks.entries()) {
    result += blocks.Text(entry);
    fmt::format_to(std::back_inserter(result), "        {}\n\n", entry.count);
  }
  return result;
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
