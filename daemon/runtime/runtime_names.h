// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/profile/runtime_frame.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/cpython/code_object.h"

namespace profd {

// Since the start, but for what is said.
struct RuntimeStatistics {
  // Runs of frames, in stacks that were seen first.
  struct Runs {
    uint64_t all = 0;
    uint64_t torn = 0;        // that were being changed
    uint64_t cut = 0;         // that a bound cut off, with all behind
    uint64_t not_placed = 0;  // of no native frame: a call begins or ends, or
                              // is on another stack
  };
  // Threads that did not run, whose stacks a walk over all threads sent.
  struct Sleepers {
    uint64_t read = 0;         // that have frames of a runtime
    uint64_t went_on = 0;      // and so had others by then
    uint64_t out_of_time = 0;  // that could not be read in time
  };
  // Copied stacks through code that a runtime made, of threads that went on.
  struct Copies {
    uint64_t read = 0;       // that were followed
    uint64_t uncertain = 0;  // the code may be other code by then
    uint64_t too_old = 0;    // for that code to be read
    uint64_t out_of_time = 0;
  };
  // Compiled functions that are shown without those that are inlined there.
  struct Inlined {
    uint64_t not_described = 0;  // the runtime says nothing of the place
    uint64_t too_much = 0;       // more than a bound
    uint64_t corrupt = 0;        // what it says does not hold up
  };
  uint64_t processes = 0;  // whose interpreter is known, now
  Runs runs;
  Sleepers sleepers;
  Copies copies;
  Inlined inlined;
  uint64_t codes = 0;           // functions that were named
  uint64_t codes_unread = 0;    // whose memory could not be read
  uint64_t codes_refused = 0;   // that there was no room for, or any more
  uint64_t code_bytes = 0;      // of names and line tables, now
  uint64_t frames_unnamed = 0;  // each time that one was needed
};

// The names of sampled code of runtimes, and the frames made of it. Numbers of
// frames are never used again, so that what is drained at different times can
// be put together. Not thread-safe.
class RuntimeNames {
 public:
  // The most that names and line tables take. With more, those of the process
  // that has most go which were not used for longest.
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // `code`: the sampler's id, which has the process in it.
  void Add(const ksym::ProcessId& process, uint64_t code,
           ksym::CpythonCode names);
  void AddUnread() { ++statistics_.codes_unread; }
  // Code that went to make room, since the last call.
  std::vector<uint64_t> TakeDropped() { return std::exchange(dropped_, {}); }
  bool contains(uint64_t code) const { return codes_.contains(code); }
  // Frees what only this process needs; frames that were made of it stay.
  void Forget(const ksym::ProcessId& process);

  // The frame of that instruction, in units of two bytes.
  RuntimeFrameId FrameOf(uint64_t code, uint32_t index);
  // The number of that frame, and one for a frame that is known later.
  RuntimeFrameId IdOf(const RuntimeFrame& frame);
  RuntimeFrameId NewId() { return ++last_id_; }
  // The frame of an id that came from here and was not forgotten twice; else an
  // empty one. Valid until the next call.
  const RuntimeFrame& Get(RuntimeFrameId id) const;
  // Begins the next interval, after each drain. Beyond this number of frames
  // those that were made before the drain before are forgotten; no stack has
  // them any more.
  static constexpr size_t kMaxFrames = size_t{1} << 16;
  void ForgetOldFrames();
  // Instructions of one function whose frames are remembered.
  static constexpr size_t kMaxIndexes = 1024;
  // How often frames were forgotten: those of before are there until the next
  // time.
  uint64_t forgettings() const { return forgettings_; }

  const RuntimeStatistics& statistics() const { return statistics_; }

 private:
  struct Code {
    // What each look-up needs comes first, beside the key: most of them find
    // none of it in the CPU's cache.
    uint64_t used = 0;  // the last interval in which it was asked for
    // Frames that were made of it, by index; those are made again that there
    // was no room for.
    std::vector<std::pair<uint32_t, RuntimeFrameId>> frames;
    ksym::ProcessId process;
    ksym::CpythonCode names;
  };
  // The code of one process, and the bytes of that.
  struct Owned {
    std::set<uint64_t> codes;
    size_t bytes = 0;
  };
  static size_t BytesOf(const Code& code);
  bool MakeRoom(size_t bytes);
  void Drop(uint64_t code);

  std::unordered_map<uint64_t, Code, ksym::NumberHash> codes_;
  std::map<ksym::ProcessId, Owned> of_process_;
  std::vector<uint64_t> dropped_;
  uint64_t interval_ = 1;
  // By what they say.
  struct FrameHash {
    size_t operator()(const RuntimeFrame* frame) const;
  };
  struct SameFrame {
    bool operator()(const RuntimeFrame* a, const RuntimeFrame* b) const {
      return *a == *b;
    }
  };
  // Frames by their ids, and those that will be forgotten next.
  std::unordered_map<RuntimeFrameId, RuntimeFrame> frames_;
  std::unordered_map<RuntimeFrameId, RuntimeFrame> old_frames_;
  // The keys point into frames_, whose elements stay where they are.
  std::unordered_map<const RuntimeFrame*, RuntimeFrameId, FrameHash, SameFrame>
      ids_;
  RuntimeFrameId last_id_ = 0;
  uint64_t forgettings_ = 0;
  RuntimeStatistics statistics_;
};

}  // namespace profd
