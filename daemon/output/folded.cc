// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/counted_texts.h"
#include "daemon/output/safe_name.h"
#include "daemon/output/stack_state.h"
#include "daemon/output/text_pieces.h"
#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/sample_kind.h"

namespace profd {
namespace {

// Keys lie anywhere; so many are fetched before they are needed.
constexpr size_t kLinesAhead = 8;

class FoldedWriter {
 public:
  FoldedWriter(const Profile& profile, const OutputOptions& options)
      : profile_(profile), options_(options) {}

  void Run(OutputBuffer& out) {
    MakePieces();
    for (size_t i = 0; i < profile_.samples.size(); ++i) {
      AddLine(profile_.samples[i], owners_[owner_of_sample_[i]]);
    }
    lines_.SortAndMerge();
    // After equal stacks are added up, so that each sum is rounded once.
    if (IsTime(profile_)) ToMicroseconds();
    SortWholeLines();
    WriteLines(out);
  }

 private:
  // Counts are nanoseconds and no samples.
  static bool IsTime(const Profile& profile) {
    const SampleKind& kind = profile.metadata.kinds.front();
    return kind.unit == "nanoseconds" && kind.has_values;
  }

  // As other tools have time in folded stacks; at least one.
  void ToMicroseconds() {
    constexpr uint64_t kNsPerUs = 1000;
    for (auto& entry : lines_.entries()) {
      entry.count =
          std::max<uint64_t>((entry.count + kNsPerUs / 2) / kNsPerUs, 1);
    }
  }

  // A name as a piece of a line, with what follows it there: numbers in
  // pieces_, and ranks when these are there.
  struct Name {
    uint32_t inner = 0;  // "name;"
    uint32_t last = 0;   // "name ", in front of the count
    // Whether a piece follows that begins with the last one.
    bool last_begins_next = false;
  };

  Name AddName(std::string text) {
    Name name;
    text += ';';
    name.inner = pieces_.Add(text);
    text.back() = ' ';
    name.last = pieces_.Add(text);
    return name;
  }
  Name Ranked(Name name) const {
    const uint32_t last = pieces_.RankOf(name.last);
    return {.inner = pieces_.RankOf(name.inner),
            .last = last,
            .last_begins_next = pieces_.BeginsNext(last)};
  }

  std::string FrameText(const Frame& frame) const {
    std::string text;
    const std::string_view name = profile_.String(frame.name);
    if (FindDivider(name) == frame.kind) {
      text = name;
    } else {
      AppendFoldedName(name, text);
    }
    if (options_.annotations) text += frame.kind->folded_suffix;
    return text;
  }

  std::string OwnerText(const ProfileSample& sample) const {
    std::string text;
    AppendFoldedName(profile_.String(sample.comm), text);
    if (options_.by == OutputOptions::By::kComm) return text;
    fmt::format_to(std::back_inserter(text), "-{}", sample.pid);
    if (options_.by == OutputOptions::By::kTid) {
      fmt::format_to(std::back_inserter(text), "/{}", sample.tid);
    }
    return text;
  }

  void MakePieces() {
    frames_.reserve(profile_.frames.size());
    for (const Frame& frame : profile_.frames) {
      frames_.push_back(AddName(FrameText(frame)));
    }
    SampleHeads heads;
    owner_of_sample_.reserve(profile_.samples.size());
    for (const ProfileSample& sample : profile_.samples) {
      owner_of_sample_.push_back(heads.Find(sample, [&] {
        owners_.push_back(AddName(OwnerText(sample)));
        return static_cast<uint32_t>(owners_.size() - 1);
      }));
    }
    for (size_t i = 0; i < marks_.size(); ++i) {
      marks_[i] = AddName(std::string(kStackMarks[i]));
    }
    delimiter_ = AddName("-");
    pieces_.Rank();
    for (std::vector<Name>* names : {&frames_, &owners_}) {
      for (Name& name : *names) name = Ranked(name);
    }
    for (Name& mark : marks_) mark = Ranked(mark);
    delimiter_ = Ranked(delimiter_);
  }

  void AddLine(const ProfileSample& sample, const Name& owner) {
    KeyWriter key(pieces_.rank_bits(), lines_.buffer());
    const Name* before = &owner;  // perhaps the last one
    const auto add = [&](const Name& name) {
      key.Add(before->inner);
      before = &name;
    };
    const auto add_stack = [&](StackState state, CallStackId stack,
                               StackOf of) {
      if (const auto mark = MarkOf(state, of)) add(marks_[*mark]);
      if (IsMissed(state)) return;
      for (const FrameId frame : profile_.Stack(stack) | std::views::reverse) {
        add(frames_[frame]);
      }
    };
    add_stack(sample.user_state, sample.user, StackOf::kUser);
    if (options_.delimiter && HasBothStacks(sample)) add(delimiter_);
    add_stack(sample.kernel_state, sample.kernel, StackOf::kKernel);
    key.Add(before->last);
    is_order_of_keys_ &= !before->last_begins_next;
    key.Finish();
    lines_.Commit(sample.count);
  }

  // Keys are in the order of the lines but where one name is another one's
  // beginning and the count decides: "f 9" stands behind "f !g 1". Within a
  // line a name ends in a semicolon, which no other one has.
  void SortWholeLines() {
    if (is_order_of_keys_) return;
    auto& entries = lines_.entries();
    const auto less = [this](const auto& a, const auto& b) {
      return LineLess(a, b);
    };
    if (!std::ranges::is_sorted(entries, less)) {
      std::ranges::sort(entries, less);
    }
  }

  bool LineLess(const CountedTexts::Entry& a,
                const CountedTexts::Entry& b) const {
    const unsigned bits = pieces_.rank_bits();
    const std::string_view text_a = lines_.Text(a);
    const std::string_view text_b = lines_.Text(b);
    // Neighbours begin with the same names for the most part.
    const size_t same = CountSharedRanks(bits, text_a, text_b);
    KeyReader key_a(bits, text_a, same);
    KeyReader key_b(bits, text_b, same);
    uint32_t rank_a = 0;
    uint32_t rank_b = 0;
    do {
      rank_a = key_a.Next();
      rank_b = key_b.Next();
      // No line is another one's beginning: its last name says that it is.
      if (rank_a == 0 || rank_b == 0) return false;
    } while (rank_a == rank_b);
    if (!pieces_.BeginsNext(std::min(rank_a, rank_b))) return rank_a < rank_b;
    return Rest(rank_a, key_a, a.count) < Rest(rank_b, key_b, b.count);
  }

  // The line from a name on.
  std::string Rest(uint32_t rank, KeyReader key, uint64_t count) const {
    std::string rest;
    for (; rank != 0; rank = key.Next()) rest += pieces_.Text(rank);
    return rest += fmt::format_int(count).c_str();
  }

  // Lines that follow each other begin with the same names for the most part.
  void WriteLines(OutputBuffer& out) const {
    std::string line;
    std::string_view before;   // the key of `line`
    std::vector<size_t> ends;  // of its names
    const std::vector<CountedTexts::Entry>& entries = lines_.entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i + kLinesAhead < entries.size()) {
        __builtin_prefetch(lines_.Text(entries[i + kLinesAhead]).data());
      }
      const CountedTexts::Entry& entry = entries[i];
      const std::string_view text = lines_.Text(entry);
      const size_t same = std::min(
          CountSharedRanks(pieces_.rank_bits(), before, text), ends.size());
      ends.resize(same);
      line.resize(same == 0 ? 0 : ends.back());
      KeyReader key(pieces_.rank_bits(), text, same);
      while (const uint32_t rank = key.Next()) {
        line += pieces_.Text(rank);
        ends.push_back(line.size());
      }
      before = text;
      const fmt::format_int count(entry.count);
      out.text().append(line).append(count.data(), count.size()) += '\n';
      if (!out.PassOn()) return;
    }
  }

  const Profile& profile_;
  const OutputOptions& options_;
  TextPieces pieces_;
  std::vector<Name> frames_;  // by FrameId
  std::vector<Name> owners_;
  std::vector<uint32_t> owner_of_sample_;  // indices into owners_
  std::array<Name, kStackMarks.size()> marks_;
  Name delimiter_;
  CountedTexts lines_;
  bool is_order_of_keys_ = true;
};

}  // namespace

void WriteFolded(const Profile& profile, const OutputOptions& options,
                 OutputBuffer& out) {
  FoldedWriter(profile, options).Run(out);
}

}  // namespace profd
