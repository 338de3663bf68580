// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/perf_script_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/input/input_builder.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// The upper half of the address space, on every 64-bit machine of Linux.
constexpr uint64_t kKernelHalf = uint64_t{1} << 63;

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

std::string_view TrimSpace(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

// The next word off the front, with the space around it.
std::string_view TakeWord(std::string_view& text) {
  text = TrimSpace(text);
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

struct Header {
  std::string_view comm;
  uint32_t pid = 0;
  uint32_t tid = 0;
  std::string_view event;
  std::string_view rest;  // after the event: a frame where there is no stack
};

struct Ids {
  uint32_t pid = 0;
  uint32_t tid = 0;
};

// "12" or "12/34"; perf writes -1 for none.
std::optional<Ids> ParseIds(std::string_view word) {
  if (word == "-1") return Ids{};
  const std::string_view first = ksym::TakeField(word, '/');
  const auto pid = ksym::ParseUnsigned<uint32_t>(first, 10);
  if (!pid) return std::nullopt;
  if (word.empty()) return Ids{*pid, *pid};
  const auto tid = ksym::ParseUnsigned<uint32_t>(word, 10);
  if (!tid) return std::nullopt;
  return Ids{*pid, *tid};
}

// "789.674523:"
bool IsTime(std::string_view word) {
  if (!word.ends_with(':')) return false;
  word.remove_suffix(1);
  const std::string_view seconds = ksym::TakeField(word, '.');
  return ksym::ParseUnsigned(seconds, 10) && ksym::ParseUnsigned(word, 10);
}

bool IsCpu(std::string_view word) {
  return word.size() > 2 && word.front() == '[' && word.back() == ']' &&
         ksym::ParseUnsigned(word.substr(1, word.size() - 2), 10);
}

// After the time: "[PERIOD] EVENT: [FRAME]". Events have colons within.
bool ParseEvent(std::string_view text, Header& header) {
  std::string_view word = TakeWord(text);
  if (ksym::ParseUnsigned(word, 10)) word = TakeWord(text);
  if (word.size() < 2 || !word.ends_with(':')) return false;
  header.event = word.substr(0, word.size() - 1);
  header.rest = TrimSpace(text);
  return true;
}

// "COMM PID[/TID] [CPU] TIME: [PERIOD] EVENT:"; the command may have spaces
// and numbers in it, so the ids are the first that a time follows.
std::optional<Header> ParseHeader(std::string_view line) {
  if (line.empty() || IsSpace(line.front())) return std::nullopt;
  std::string_view rest = line;
  TakeWord(rest);  // the command is one word at least
  while (!rest.empty()) {
    const size_t comm_size = line.size() - rest.size();
    const auto ids = ParseIds(TakeWord(rest));
    if (!ids) continue;
    std::string_view after = rest;
    std::string_view word = TakeWord(after);
    if (IsCpu(word)) word = TakeWord(after);
    if (!IsTime(word)) continue;
    Header header = {.comm = TrimSpace(line.substr(0, comm_size)),
                     .pid = ids->pid,
                     .tid = ids->tid,
                     .event = {},
                     .rest = {}};
    if (!ParseEvent(after, header)) return std::nullopt;
    return header;
  }
  return std::nullopt;
}

// "ADDRESS SYMBOL+0xOFFSET (MODULE)", each of the last two perhaps absent. The
// views are of `line`.
std::optional<InputFrame> ParseFrame(std::string_view line) {
  std::string_view rest = line;
  const auto address = ksym::ParseUnsigned(TakeWord(rest), 16);
  if (!address) return std::nullopt;
  rest = TrimSpace(rest);
  InputFrame frame;
  frame.address = *address;
  if (*address >= kKernelHalf) frame.kind = &kKernelFrame;
  if (rest.ends_with(')')) {
    const size_t open = rest.rfind(" (");
    if (open != std::string_view::npos) {
      frame.object = rest.substr(open + 2, rest.size() - open - 3);
      rest = TrimSpace(rest.substr(0, open));
    } else if (rest.starts_with('(')) {
      frame.object = rest.substr(1, rest.size() - 2);
      rest = {};
    }
  }
  if (frame.object == "inlined") {
    frame.kind = frame.kind->inlined;
    frame.object = {};
  }
  const size_t plus = rest.rfind("+0x");
  if (plus != std::string_view::npos && plus != 0) {
    const auto offset = ksym::ParseUnsigned(rest.substr(plus + 3), 16);
    if (offset) {
      frame.symbol_offset = *offset;
      rest = rest.substr(0, plus);
    }
  }
  // As ksym-profile writes what begins with a parenthesis.
  if (rest.starts_with("::(")) rest.remove_prefix(2);
  frame.name = rest;
  if (frame.object.starts_with('[') && frame.object.ends_with("].ko")) {
    frame.object.remove_suffix(3);
  }
  if (InputBuilder::IsKernelModule(frame.object)) {
    frame.kind = &kKernelFrame;
  }
  return frame;
}

// "FILE:LINE", which -F +srcline prints below a frame.
bool ParsePlace(std::string_view line, InputFrame& frame) {
  const std::string_view text = TrimSpace(line);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto number = ksym::ParseUnsigned<uint32_t>(text.substr(colon + 1), 10);
  if (!number) return false;
  frame.file = text.substr(0, colon);
  frame.line = *number;
  return true;
}

class Reader {
 public:
  ksym::Result<Profile> Run(std::string_view text) {
    for (size_t number = 1; !text.empty(); ++number) {
      std::string_view line = ksym::TakeField(text, '\n');
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!TakeLine(line)) {
        builder_.LeaveOut(fmt::format("line {}", number),
                          "it is neither a sample nor a frame");
      }
    }
    EndSample();
    CaptureMetadata metadata;
    metadata.kinds = {EventKind(event_, 0, 1)};
    if (others_ != 0) {
      metadata.warnings.push_back(fmt::format(
          "{} samples of other events than {} are left out: give perf script "
          "one event",
          others_, event_));
    }
    return std::move(builder_).Finish(std::move(metadata));
  }

 private:
  bool TakeLine(std::string_view line) {
    if (line.empty()) {
      EndSample();
      return true;
    }
    if (line.front() == '#') return true;
    if (!IsSpace(line.front())) {
      EndSample();
      return BeginSample(line);
    }
    if (auto frame = ParseFrame(line)) {
      frames_.push_back(*frame);
      return header_.has_value();
    }
    return !frames_.empty() && ParsePlace(line, frames_.back());
  }

  bool BeginSample(std::string_view line) {
    header_ = ParseHeader(line);
    if (!header_) return false;
    if (header_->rest.empty()) return true;
    if (const auto frame = ParseFrame(header_->rest)) frames_.push_back(*frame);
    return true;
  }

  void EndSample() {
    if (header_) AddSample(*header_);
    header_.reset();
    frames_.clear();
  }

  void AddSample(const Header& header) {
    if (event_.empty()) event_ = header.event;
    if (header.event != event_) {
      ++others_;
      return;
    }
    user_.clear();
    kernel_.clear();
    // Inlined frames are in the file of the one that they are in.
    for (size_t i = frames_.size(); i-- > 1;) {
      if (frames_[i - 1].kind->is_inlined) {
        frames_[i - 1].object = frames_[i].object;
      }
    }
    for (const InputFrame& frame : frames_) AddFrame(frame);
    builder_.Add({.comm = header.comm,
                  .pid = header.pid,
                  .tid = header.tid,
                  .user = user_,
                  .kernel = kernel_,
                  .user_state = InputBuilder::StateOf(user_),
                  .kernel_state = InputBuilder::StateOf(kernel_),
                  .count = 1});
  }

  // Equal places are one frame, whatever their addresses.
  void AddFrame(InputFrame frame) {
    std::string bracketed;
    frame.address = 0;
    frame.symbol_offset = 0;
    const bool has_module =
        !frame.object.empty() && frame.object != "[unknown]";
    if (!has_module) frame.object = {};
    if (frame.name.empty() || frame.name == "[unknown]") {
      frame.reason = ksym::Unresolved::kNoSymbol;
      frame.name = "[unknown]";
      const std::string_view base =
          frame.object.substr(frame.object.rfind('/') + 1);
      if (has_module && !base.empty() && base.front() != '[') {
        bracketed = fmt::format("[{}]", base);
        frame.name = bracketed;
      }
    }
    if (frame.kind->is_kernel && frame.object.starts_with("[kernel")) {
      frame.object = "[kernel]";
    }
    if (frame.kind->is_kernel && !frame.kind->is_inlined) {
      frame.kind = KernelKindOf(frame.object);
    }
    const bool is_kernel = frame.kind->is_kernel;
    frame.kind = InputBuilder::KindOf(frame);
    const FrameId id = builder_.AddFrame(frame);
    // User frames before the kernel's stay there: they are those of who woke a
    // thread that waited in the kernel.
    if (is_kernel) {
      kernel_.insert(kernel_.end(), user_.begin(), user_.end());
      kernel_.push_back(id);
      user_.clear();
    } else {
      user_.push_back(id);
    }
  }

  InputBuilder builder_;
  std::string event_;
  uint64_t others_ = 0;
  std::optional<Header> header_;
  std::vector<InputFrame> frames_;  // of the sample
  std::vector<FrameId> user_;
  std::vector<FrameId> kernel_;
};

}  // namespace

bool LooksLikePerfScript(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = ksym::TakeField(text, '\n');
    if (line.empty() || line.front() == '#') continue;
    return ParseHeader(line).has_value();
  }
  return false;
}

ksym::Result<Profile> ReadPerfScript(std::string_view text) {
  return Reader().Run(text);
}

}  // namespace profd
