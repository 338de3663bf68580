// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/speedscope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/counted_texts.h"
#include "daemon/output/safe_name.h"
#include "daemon/output/stack_state.h"
#include "daemon/output/summary.h"

namespace profd {
namespace {

constexpr size_t kMaxOwners = 100;

struct Weight {
  std::string_view unit = "none";
  uint64_t period = 1;
};

// Units that speedscope knows; counts are of none.
constexpr std::array<std::string_view, 5> kUnits = {
    "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"};

Weight WeightOf(const SampleKind& kind) {
  const auto* unit = std::ranges::find(kUnits, kind.unit);
  if (unit == kUnits.end()) return {};
  if (kind.has_values) return {*unit, 1};
  const uint64_t period = UnitsPerSample(kind);
  return period == 0 ? Weight{} : Weight{*unit, period};
}

void AppendText(std::string_view key, std::string_view value,
                std::string& out) {
  fmt::format_to(std::back_inserter(out), "\"{}\":\"", key);
  AppendJsonText(value, out);
  out += '"';
}

// The frames as they are shown: sorted, each one once.
class Frames {
 public:
  explicit Frames(const Profile& profile) {
    for (const Frame& frame : profile.frames) {
      texts_.push_back(TextOf(profile, frame));
    }
  }

  void AddNamed(std::string_view name) {
    std::string text = "{";
    AppendText("name", name, text);
    texts_.push_back(std::move(text) + "}");
  }

  void Number() {
    for (const std::string& text : texts_) numbers_.emplace(text, 0);
    size_t next = 0;
    for (auto& [text, number] : numbers_) number = next++;
    for (const std::string& text : texts_) {
      indices_.push_back(numbers_.at(text));
    }
    texts_.clear();
  }

  // In the order in which they were added, the profile's frames first.
  size_t IndexOf(size_t added) const { return indices_[added]; }
  const std::map<std::string, size_t>& all() const { return numbers_; }

 private:
  static std::string TextOf(const Profile& profile, const Frame& frame) {
    std::string text = "{";
    const std::string_view name = profile.String(frame.name);
    AppendText("name", name.empty() ? "[unknown]" : name, text);
    // Where there is no source file, the file of the program.
    const std::string_view file =
        profile.String(frame.file != 0 ? frame.file : frame.object);
    if (!file.empty()) {
      text += ',';
      AppendText("file", file, text);
    }
    if (frame.file != 0 && frame.line != 0) {
      fmt::format_to(std::back_inserter(text), ",\"line\":{}", frame.line);
    }
    return text + "}";
  }

  std::vector<std::string> texts_;
  std::map<std::string, size_t> numbers_;
  std::vector<size_t> indices_;
};

class Writer {
 public:
  Writer(const Profile& profile, const OutputOptions& options)
      : profile_(profile), options_(options), frames_(profile) {
    std::map<std::string, size_t> owners;
    for (const ProfileSample& sample : profile_.samples) {
      owners.emplace(OwnerOf(sample), 0);
    }
    for (auto& [name, number] : owners) {
      number = owners_.size();
      owners_.push_back({.name = name});
      frames_.AddNamed(name);
    }
    for (const std::string_view mark : kStackMarks) frames_.AddNamed(mark);
    frames_.Number();
    for (const ProfileSample& sample : profile_.samples) {
      AddSample(sample, owners.at(OwnerOf(sample)));
    }
    for (Owner& owner : owners_) owner.stacks.SortAndMerge();
  }

  void Run(OutputBuffer& out) const {
    std::string& text = out.text();
    text +=
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
        "\n\"shared\":{\"frames\":[";
    std::string_view before = "\n";
    for (const auto& [frame, number] : frames_.all()) {
      text += std::exchange(before, ",\n");
      text += frame;
      if (!out.PassOn()) return;
    }
    text += "\n]},\n\"profiles\":[";
    WriteProfile("all", Range(0, owners_.size()), out);
    if (owners_.size() > 1) {
      for (const size_t owner : Busiest()) {
        text += ',';
        WriteProfile(owners_[owner].name, Range(owner, owner + 1), out);
      }
    }
    text += "\n],\n\"activeProfileIndex\":0,";
    AppendText("exporter", "ksym-profile@" KSYM_VERSION, text);
    text += ',';
    AppendText("name", ProfileTitle(profile_), text);
    text += "}\n";
  }

 private:
  struct Owner {
    std::string name;
    CountedTexts stacks = {};  // lists of frames: ",3,0,7"
    uint64_t count = 0;
  };
  using Indices = std::pair<size_t, size_t>;
  static Indices Range(size_t begin, size_t end) { return {begin, end}; }

  std::string OwnerOf(const ProfileSample& sample) const {
    std::string name(profile_.String(sample.comm));
    if (options_.by == OutputOptions::By::kComm) return name;
    name += fmt::format("-{}", sample.pid);
    if (options_.by == OutputOptions::By::kTid) {
      name += fmt::format("/{}", sample.tid);
    }
    return name;
  }

  void AddSample(const ProfileSample& sample, size_t number) {
    Owner& owner = owners_[number];
    std::string& list = owner.stacks.buffer();
    Append(frames_.IndexOf(profile_.frames.size() + number), list);
    AppendStack(sample.user_state, sample.user, StackOf::kUser, list);
    AppendStack(sample.kernel_state, sample.kernel, StackOf::kKernel, list);
    owner.stacks.Commit(sample.count);
    owner.count += sample.count;
  }

  void AppendStack(StackState state, CallStackId stack, StackOf of,
                   std::string& list) const {
    const size_t marks = profile_.frames.size() + owners_.size();
    if (const auto mark = MarkOf(state, of)) {
      Append(frames_.IndexOf(marks + *mark), list);
    }
    if (IsMissed(state)) return;
    for (const FrameId frame : profile_.Stack(stack) | std::views::reverse) {
      Append(frames_.IndexOf(frame), list);
    }
  }

  static void Append(size_t index, std::string& list) {
    list += ',';
    list += fmt::format_int(index).c_str();
  }

  std::vector<size_t> Busiest() const {
    std::vector<size_t> order(owners_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [this](size_t i) { return owners_[i].count; });
    order.resize(std::min(order.size(), kMaxOwners));
    return order;
  }

  uint64_t Weigh(uint64_t count) const {
    uint64_t weight = 0;
    return __builtin_mul_overflow(count, weight_.period, &weight)
               ? std::numeric_limits<uint64_t>::max()
               : weight;
  }

  void WriteProfile(std::string_view name, Indices range,
                    OutputBuffer& out) const {
    const auto owners =
        std::span(owners_).subspan(range.first, range.second - range.first);
    uint64_t count = 0;
    for (const Owner& owner : owners) count += owner.count;
    std::string& text = out.text();
    text += "\n{\"type\":\"sampled\",";
    AppendText("name", name, text);
    fmt::format_to(std::back_inserter(text),
                   ",\"unit\":\"{}\",\"startValue\":0,\"endValue\":{},"
                   "\"samples\":[",
                   weight_.unit, Weigh(count));
    std::string_view before = "\n[";
    for (const Owner& owner : owners) {
      for (const CountedTexts::Entry& entry : owner.stacks.entries()) {
        text += std::exchange(before, ",\n[");
        text += owner.stacks.Text(entry).substr(1);
        text += ']';
        if (!out.PassOn()) return;
      }
    }
    text += "\n],\"weights\":[";
    before = "";
    for (const Owner& owner : owners) {
      for (const CountedTexts::Entry& entry : owner.stacks.entries()) {
        text += std::exchange(before, ",");
        text += fmt::format_int(Weigh(entry.count)).c_str();
        if (!out.PassOn()) return;
      }
    }
    text += "]}";
  }

  const Profile& profile_;
  const OutputOptions& options_;
  Frames frames_;
  std::vector<Owner> owners_;
  Weight weight_ = WeightOf(profile_.metadata.kinds.front());
};

}  // namespace

void WriteSpeedscope(const Profile& profile, const OutputOptions& options,
                     OutputBuffer& out) {
  Writer(profile, options).Run(out);
}

}  // namespace profd
