// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/id_index.h"
#include "daemon/profile/label_set.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/profile/thread_sums.h"
#include "ksym/symbolizer.h"

namespace profd {

// Index into a Profile's strings; 0 is the empty string.
using StringId = uint32_t;
// Index into a Profile's frames.
using FrameId = uint32_t;
// Index into a Profile's call stacks; 0 is the empty one.
using CallStackId = uint32_t;

// Each different text once. Views stay valid while the table lives, also when
// it is moved. A text takes some 30 bytes beside its own.
class StringTable {
 public:
  StringTable();
  ~StringTable() = default;
  // A copy has the texts at places of its own.
  StringTable(const StringTable& other);
  StringTable& operator=(const StringTable& other);
  StringTable(StringTable&& other) = default;
  StringTable& operator=(StringTable&& other) = default;

  StringId Intern(std::string_view text);
  std::string_view Get(StringId id) const { return strings_[id]; }
  size_t size() const { return strings_.size(); }
  // With all that belongs to it.
  size_t memory_bytes() const {
    // The array may have room for as many again.
    return block_bytes_ + 2 * strings_.size() * sizeof(std::string_view) +
           ids_.memory_bytes();
  }

 private:
  void Append(std::string_view text);

  std::vector<std::string_view> strings_;
  // The texts' bytes. No text moves: a block is never filled beyond its room,
  // and a vector that is moved keeps its bytes where they are.
  std::vector<std::vector<char>> blocks_;
  size_t block_bytes_ = 0;
  IdIndex ids_;
};

// Lists of frames, all in one array: 8 bytes and 4 per frame for a stack,
// without an allocation of its own. A view is valid until the next Intern or
// Append.
class CallStackTable {
 public:
  CallStackTable();
  // The one that there is, or a new one.
  CallStackId Intern(std::span<const FrameId> leaf_first);
  // A new one even if there is an equal one; Intern() does not find it.
  CallStackId Append(std::span<const FrameId> leaf_first);
  std::span<const FrameId> Get(CallStackId id) const {
    return {frames_.data() + ends_[id], ends_[id + 1] - ends_[id]};
  }
  size_t size() const { return ends_.size() - 1; }
  size_t memory_bytes() const {
    return frames_.capacity() * sizeof(FrameId) +
           ends_.capacity() * sizeof(size_t) + ids_.memory_bytes();
  }
  // Makes room for so many stacks of so many frames all together.
  void Reserve(size_t stacks, size_t frames) {
    frames_.reserve(frames);
    ends_.reserve(stacks + 2);
  }

 private:
  std::vector<FrameId> frames_;
  // Stack i ends where i + 1 begins: at ends_[i + 1].
  std::vector<size_t> ends_ = {0};
  IdIndex ids_;
};

// Index into a Profile's label sets; 0 is the empty one.
using LabelSetId = uint32_t;

// A label whose texts are in a Profile.
struct InternedLabel {
  StringId key = 0;
  StringId value = 0;

  friend bool operator==(const InternedLabel&, const InternedLabel&) = default;
};

// Sets of labels, each once: a few for each container. Each is in the order of
// its keys' texts, with each key once.
class LabelSetTable {
 public:
  LabelSetTable();
  LabelSetId Intern(std::span<const InternedLabel> labels);
  std::span<const InternedLabel> Get(LabelSetId id) const { return sets_[id]; }
  size_t size() const { return sets_.size(); }
  size_t memory_bytes() const {
    return sets_.size() * sizeof(std::vector<InternedLabel>) +
           labels_ * sizeof(InternedLabel) + ids_.memory_bytes();
  }

 private:
  std::vector<std::vector<InternedLabel>> sets_;
  size_t labels_ = 0;  // of all sets
  IdIndex ids_;
};

// One named (or explained) place in a program. Equal frames are one FrameId.
struct Frame {
  // As it is printed, before any escaping: the symbol's name, or "[libfoo.so]"
  // in a known file, "[unknown]", "[kernel]".
  StringId name = 0;
  // Path of the file; of a kernel frame "[kernel]" or "[module]".
  StringId object = 0;
  StringId build_id = 0;
  const FrameKind* kind = &kUserFrame;  // lives for ever
  ksym::Unresolved reason = ksym::Unresolved::kNone;
  uint64_t address = 0;      // at run time, as sampled
  uint64_t file_offset = 0;  // user frames in a file; kernel: see resolve.h
  uint64_t symbol_offset = 0;
  // Where in the source the code is, or for the callers of inlined code the
  // call; 0: not known, or not asked for.
  StringId file = 0;
  uint32_t line = 0;
  // Where a language runtime keeps the frame: the function's qualified name
  // alone, and where it begins in `file`; else 0.
  StringId function = 0;
  uint32_t first_line = 0;
  // The runtime knows no line of that place, and `line` is one near it.
  bool line_is_near = false;

  friend bool operator==(const Frame&, const Frame&) = default;
};

// Whether a sample has the stack of this kind.
enum class StackState : uint8_t {
  kNone,       // there was none, or it was not asked for
  kWhole,      // as far as the walk could see
  kTruncated,  // the depth limit cut the root end off
  kBroken,     // the root end is missing: the walk could not go on
  kFaulted,    // the kernel could not walk it
  kCollided,   // stackid store: lost to another stack
  // kBroken whose cause is known: how the walk ended, as StackEnd has it.
  kNoTable,
  kNoMapping,
  kBadRead,
  kUnsupported,
  kNoProgress,
  kBeyondCopy,
};

// Samples of one kind, of one thread or process with one pair of stacks. The
// identity is everything but the count and the value.
struct ProfileSample {
  StringId comm = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;  // 0 unless threads were asked for
  // Its path, "/system.slice/x.service"; 0: not known, or not asked for.
  StringId cgroup = 0;
  LabelSetId labels = 0;  // what else is known of the process
  StackState user_state = StackState::kNone;
  StackState kernel_state = StackState::kNone;
  SampleKindId kind = 0;       // place in CaptureMetadata::kinds
  bool parked = false;         // see MarkParked()
  TimeSlice slice = kNoSlice;  // parts of a second or so only
  CallStackId user = 0;
  CallStackId kernel = 0;
  uint64_t count = 0;
  uint64_t value = 0;  // the sum of theirs, of a kind that has them
};

// A named profile: what the writers in daemon/output take. Value, owns its
// strings. The order of samples, stacks and frames carries no meaning, and two
// that are equal count as one: writers sort and merge.
struct Profile {
  CaptureMetadata metadata;
  Accounting accounting;
  StringTable strings;
  std::vector<Frame> frames;
  CallStackTable stacks;
  LabelSetTable label_sets;
  std::vector<ProfileSample> samples;
  // Tables that did not fit --symbol-cache and were read again when needed.
  uint64_t symbol_tables_evicted = 0;
  // The threads whose waits were sampled.
  ThreadSums thread_sums;

  // About what it takes.
  size_t memory_bytes() const;
  std::string_view String(StringId id) const { return strings.Get(id); }
  // Leaf first.
  std::span<const FrameId> Stack(CallStackId id) const {
    return stacks.Get(id);
  }
  std::span<const InternedLabel> LabelsOf(const ProfileSample& sample) const {
    return label_sets.Get(sample.labels);
  }
};

// Puts a Profile together: interns strings, frames and stacks, and merges
// equal samples. All operations are O(1) on average in the number of elements.
class ProfileBuilder {
 public:
  // Parts that are added one by one have the same stacks and samples again and
  // again, and these are merged. One capture as a whole has each once but for
  // those that only their names make equal: not worth a hash table, which is
  // some 300 ns for each of 100,000 stacks.
  enum class Parts : uint8_t { kOne, kMany };
  ProfileBuilder() = default;
  explicit ProfileBuilder(Parts parts) : parts_(parts) {}

  StringId Intern(std::string_view text) {
    return profile_.strings.Intern(text);
  }
  FrameId AddFrame(const Frame& frame);
  CallStackId AddStack(std::span<const FrameId> leaf_first) {
    return parts_ == Parts::kMany ? profile_.stacks.Intern(leaf_first)
                                  : profile_.stacks.Append(leaf_first);
  }
  LabelSetId AddLabels(const LabelSet& labels);
  LabelSetId AddLabels(std::span<const InternedLabel> labels) {
    return profile_.label_sets.Intern(labels);
  }
  // Leaf first; valid until a stack is added.
  std::span<const FrameId> Stack(CallStackId id) const {
    return profile_.Stack(id);
  }
  // Makes room for so many, if there are none yet.
  struct Sizes {
    size_t samples = 0;
    size_t stacks = 0;
    size_t frames_of_stacks = 0;
  };
  void Reserve(const Sizes& sizes);
  // For a profile of many parts: adds to the count of an equal sample when
  // there is one.
  void AddSample(const ProfileSample& sample);
  void Add(const Accounting& accounting) { profile_.accounting += accounting; }
  // Whether code of a file has no name for this reason. O(frames).
  bool HasFrameInFile(ksym::Unresolved reason) const;
  size_t distinct_samples() const { return profile_.samples.size(); }
  // About what it takes.
  size_t memory_bytes() const {
    return profile_.memory_bytes() + frame_ids_.memory_bytes() +
           sample_ids_.memory_bytes();
  }
  Profile Finish(CaptureMetadata metadata) &&;

 private:
  Parts parts_ = Parts::kMany;
  Profile profile_;
  IdIndex frame_ids_;
  IdIndex sample_ids_;
};

}  // namespace profd
