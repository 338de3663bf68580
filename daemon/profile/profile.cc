// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/profile.h"

#include <algorithm>
#include <utility>

#include "ksym/base/keyed_hash.h"

namespace profd {
namespace {

using ksym::HashWords;
using ksym::WordOf;

uint64_t HashOf(const Frame& frame) {
  return HashWords(
      WordOf(frame.name, frame.object),
      WordOf(frame.build_id, frame.line_is_near ? 1 : 0),
      reinterpret_cast<uintptr_t>(frame.kind) << 8 |
          static_cast<uint64_t>(frame.reason),
      frame.address, frame.file_offset, WordOf(frame.file, frame.line),
      WordOf(frame.function, frame.first_line), frame.symbol_offset);
}

uint64_t HashOf(const ProfileSample& sample) {
  return HashWords(WordOf(sample.comm, sample.pid),
                   uint64_t{sample.tid} << 32 | uint64_t{sample.parked} << 24 |
                       uint64_t{sample.kind} << 16 |
                       static_cast<uint64_t>(sample.user_state) << 8 |
                       static_cast<uint64_t>(sample.kernel_state),
                   WordOf(sample.cgroup, sample.labels),
                   WordOf(sample.user, sample.kernel), sample.slice);
}

bool SameIdentity(const ProfileSample& a, const ProfileSample& b) {
  return a.comm == b.comm && a.pid == b.pid && a.tid == b.tid &&
         a.cgroup == b.cgroup && a.labels == b.labels &&
         a.user_state == b.user_state && a.kind == b.kind &&
         a.parked == b.parked && a.slice == b.slice &&
         a.kernel_state == b.kernel_state && a.user == b.user &&
         a.kernel == b.kernel;
}

uint32_t NextId(size_t size) { return static_cast<uint32_t>(size); }

}  // namespace

StringTable::StringTable() { Intern(""); }

StringTable::StringTable(const StringTable& other) : ids_(other.ids_) {
  strings_.reserve(other.strings_.size());
  for (const std::string_view text : other.strings_) Append(text);
}

StringTable& StringTable::operator=(const StringTable& other) {
  // A moved one keeps its texts' places.
  if (this != &other) *this = StringTable(other);
  return *this;
}

void StringTable::Append(std::string_view text) {
  // From small on, as there are tables of a few texts.
  constexpr size_t kFirstBlock = 128;
  constexpr size_t kLargestBlock = 2048;
  if (text.empty()) return strings_.push_back("");
  if (blocks_.empty() ||
      blocks_.back().capacity() - blocks_.back().size() < text.size()) {
    const size_t last = blocks_.empty() ? 0 : blocks_.back().capacity();
    blocks_.emplace_back().reserve(std::max(
        std::clamp(2 * last, kFirstBlock, kLargestBlock), text.size()));
    block_bytes_ += blocks_.back().capacity();
  }
  std::vector<char>& block = blocks_.back();
  const size_t begin = block.size();
  block.insert(block.end(), text.begin(), text.end());
  strings_.emplace_back(block.data() + begin, text.size());
}

StringId StringTable::Intern(std::string_view text) {
  const auto [id, is_new] = ids_.FindOrInsert(
      ksym::HashText(text), NextId(strings_.size()),
      [&](StringId other) { return strings_[other] == text; });
  if (!is_new) return id;
  Append(text);
  return id;
}

CallStackTable::CallStackTable() { Intern({}); }

CallStackId CallStackTable::Append(std::span<const FrameId> leaf_first) {
  if (leaf_first.empty()) return 0;
  frames_.insert(frames_.end(), leaf_first.begin(), leaf_first.end());
  ends_.push_back(frames_.size());
  return NextId(size()) - 1;
}

CallStackId CallStackTable::Intern(std::span<const FrameId> leaf_first) {
  ksym::TableHash hash(ksym::ProcessHashKey());
  hash.Add(leaf_first.size());
  size_t i = leaf_first.size() % 2;
  if (i == 1) hash.Add(leaf_first.front());
  for (; i < leaf_first.size(); i += 2) {
    hash.Add(WordOf(leaf_first[i], leaf_first[i + 1]));
  }
  const auto [id, is_new] =
      ids_.FindOrInsert(hash.Finish(), NextId(size()), [&](CallStackId other) {
        return std::ranges::equal(Get(other), leaf_first);
      });
  if (is_new) {
    frames_.insert(frames_.end(), leaf_first.begin(), leaf_first.end());
    ends_.push_back(frames_.size());
  }
  return id;
}

LabelSetTable::LabelSetTable() { Intern({}); }

LabelSetId LabelSetTable::Intern(std::span<const InternedLabel> labels) {
  ksym::TableHash hash(ksym::ProcessHashKey());
  hash.Add(labels.size());
  for (const InternedLabel& label : labels) {
    hash.Add(WordOf(label.key, label.value));
  }
  const auto [id, is_new] = ids_.FindOrInsert(
      hash.Finish(), NextId(sets_.size()), [&](LabelSetId other) {
        return std::ranges::equal(sets_[other], labels);
      });
  if (is_new) {
    sets_.emplace_back(labels.begin(), labels.end());
    labels_ += labels.size();
  }
  return id;
}

size_t Profile::memory_bytes() const {
  return strings.memory_bytes() + frames.capacity() * sizeof(Frame) +
         stacks.memory_bytes() + label_sets.memory_bytes() +
         samples.capacity() * sizeof(ProfileSample) +
         thread_sums.threads.capacity() * sizeof(ThreadSums::Thread);
}

FrameId ProfileBuilder::AddFrame(const Frame& frame) {
  const auto [id, is_new] = frame_ids_.FindOrInsert(
      HashOf(frame), NextId(profile_.frames.size()),
      [&](FrameId other) { return profile_.frames[other] == frame; });
  if (is_new) profile_.frames.push_back(frame);
  return id;
}

LabelSetId ProfileBuilder::AddLabels(const LabelSet& labels) {
  std::vector<InternedLabel> interned;
  interned.reserve(labels.size());
  for (const Label& label : labels) {
    interned.push_back(
        {.key = Intern(label.key), .value = Intern(label.value)});
  }
  return AddLabels(interned);
}

void ProfileBuilder::Reserve(const Sizes& sizes) {
  if (!profile_.samples.empty()) return;
  profile_.stacks.Reserve(sizes.stacks, sizes.frames_of_stacks);
  profile_.samples.reserve(sizes.samples);
}

void ProfileBuilder::AddSample(const ProfileSample& sample) {
  if (parts_ == Parts::kOne) {
    profile_.samples.push_back(sample);
    return;
  }
  const auto [id, is_new] = sample_ids_.FindOrInsert(
      HashOf(sample), NextId(profile_.samples.size()), [&](uint32_t other) {
        return SameIdentity(profile_.samples[other], sample);
      });
  if (is_new) {
    profile_.samples.push_back(sample);
  } else {
    profile_.samples[id].count += sample.count;
    profile_.samples[id].value += sample.value;
  }
}

bool ProfileBuilder::HasFrameInFile(ksym::Unresolved reason) const {
  return std::ranges::any_of(profile_.frames, [&](const Frame& frame) {
    return frame.reason == reason && frame.kind->is_in_file;
  });
}

Profile ProfileBuilder::Finish(CaptureMetadata metadata) && {
  profile_.metadata = std::move(metadata);
  return std::move(profile_);
}

}  // namespace profd
