// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/folded_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/input/input_builder.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr std::string_view kDelimiter = "-";

struct Line {
  std::string_view stack;
  uint64_t count = 0;
};

std::optional<Line> ParseLine(std::string_view line) {
  // The last one: commands and names may have spaces.
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  const auto count = ksym::ParseUnsigned(line.substr(space + 1), 10);
  if (!count) return std::nullopt;
  return Line{line.substr(0, space), *count};
}

class Reader {
 public:
  ksym::Result<Profile> Run(std::string_view text) {
    for (size_t number = 1; !text.empty(); ++number) {
      std::string_view line = ksym::TakeField(text, '\n');
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || line.front() == '#') continue;
      if (const auto parsed = ParseLine(line)) {
        AddLine(*parsed);
      } else {
        builder_.LeaveOut(fmt::format("line {}", number),
                          "it does not end in a space and a count");
      }
    }
    CaptureMetadata metadata;
    metadata.kinds = {EventKind("samples", 0, 1)};
    return std::move(builder_).Finish(std::move(metadata));
  }

 private:
  void AddLine(Line line) {
    const std::string_view comm = ksym::TakeField(line.stack, ';');
    user_.clear();
    kernel_.clear();
    bool past_delimiter = false;
    while (!line.stack.empty()) {
      const std::string_view name = ksym::TakeField(line.stack, ';');
      if (name == kDelimiter) {
        past_delimiter = true;
      } else {
        AddName(name, past_delimiter);
      }
    }
    std::ranges::reverse(user_);
    std::ranges::reverse(kernel_);
    builder_.Add({.comm = comm,
                  .user = user_,
                  .kernel = kernel_,
                  .user_state = InputBuilder::StateOf(user_),
                  .kernel_state = InputBuilder::StateOf(kernel_),
                  .count = line.count});
  }

  void AddName(std::string_view name, bool past_delimiter) {
    InputFrame frame;
    if (past_delimiter) frame.kind = &kKernelFrame;
    if (const FrameKind* kind = FindFoldedSuffix(name)) {
      name.remove_suffix(kind->folded_suffix.size());
      if (!past_delimiter) {
        frame.kind = kind;
      } else if (kind->is_inlined) {
        frame.kind = frame.kind->inlined;
      }
    } else if (name.ends_with("_[j]") || name.ends_with("_[w]")) {
      name.remove_suffix(4);  // of other programs
    }
    frame.name = name;
    frame.reason = InputBuilder::ReasonOf(name);
    const bool is_kernel = frame.kind->is_kernel;
    if (is_kernel && FindDivider(name) == nullptr) frame.object = "[kernel]";
    frame.kind = InputBuilder::KindOf(frame);
    // User frames after the kernel's, as in a folded line of another tool,
    // stay where they are.
    auto& stack = is_kernel || !kernel_.empty() ? kernel_ : user_;
    stack.push_back(builder_.AddFrame(frame));
  }

  InputBuilder builder_;
  std::vector<FrameId> user_;
  std::vector<FrameId> kernel_;
};

}  // namespace

ksym::Result<Profile> ReadFolded(std::string_view text) {
  return Reader().Run(text);
}

}  // namespace profd
