#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/profile/raw_profile.h"
#include "ksym/symbolizer.h"

namespace profd {

// Index into a Profile's strings; 0 is the empty string.
using StringId = uint32_t;
// Index into a Profile's frames.
using FrameId = uint32_t;

// Each different text once. Views stay valid while the table lives.
class StringTable {
 public:
  StringTable();
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  StringId Intern(std::string_view text);
  std::string_view Get(StringId id) const { return strings_[id]; }
  size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;  // elements never move
  std::unordered_map<std::string_view, StringId> ids_;
};

enum class FrameKind : uint8_t { kUser, kKernel };

// One named (or explained) place in a program. Equal frames are one FrameId.
struct Frame {
  // As it is printed, before any escaping: the symbol's name, or "[libfoo.so]"
  // in a known file, "[unknown]", "[kernel]".
  StringId name = 0;
  // Path of the file; of a kernel frame "[kernel]" or "[module]".
  StringId module = 0;
  StringId build_id = 0;
  FrameKind kind = FrameKind::kUser;
  ksym::Unresolved reason = ksym::Unresolved::kNone;
  uint64_t address = 0;      // at run time, as sampled
  uint64_t file_offset = 0;  // user frames in a file
  uint64_t symbol_offset = 0;

  friend bool operator==(const Frame&, const Frame&) = default;
};

// Whether a sample has the stack of this kind.
enum class StackState : uint8_t {
  kNone,       // there was none, or it was not asked for
  kWhole,      // as far as the walk could see
  kTruncated,  // the depth limit cut the root end off
  kFaulted,    // the kernel could not walk it
  kCollided,   // stackid store: lost to another stack
};

// Samples of one thread or process with one pair of stacks.
struct ProfileSample {
  StringId comm = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;  // 0 unless threads were asked for
  StackState user_state = StackState::kNone;
  StackState kernel_state = StackState::kNone;
  std::vector<FrameId> user;    // leaf first
  std::vector<FrameId> kernel;  // leaf first
  uint64_t count = 0;
};

// A named profile: what the writers in daemon/output take. Value, owns its
// strings. The order of samples and frames carries no meaning; writers sort.
struct Profile {
  CaptureMetadata metadata;
  Accounting accounting;
  StringTable strings;
  std::vector<Frame> frames;
  std::vector<ProfileSample> samples;  // no two equal but for the count

  std::string_view String(StringId id) const { return strings.Get(id); }
};

// Puts a Profile together: interns frames and merges equal samples.
class ProfileBuilder {
 public:
  ProfileBuilder();
  StringId Intern(std::string_view text) {
    return profile_.strings.Intern(text);
  }
  FrameId AddFrame(const Frame& frame);
  // Adds to the count of an equal sample when there is one.
  void AddSample(ProfileSample sample);
  void Add(const Accounting& accounting) { profile_.accounting += accounting; }
  size_t distinct_samples() const { return profile_.samples.size(); }
  Profile Finish(CaptureMetadata metadata) &&;

 private:
  struct FrameHash {
    size_t operator()(const Frame& frame) const noexcept;
  };
  Profile profile_;
  std::unordered_map<Frame, FrameId, FrameHash> frame_ids_;
  // From the hash of a sample's identity to the samples that have it.
  std::unordered_multimap<uint64_t, size_t> sample_ids_;
};

}  // namespace profd
