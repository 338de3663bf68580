// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/capture/foreign_memory.h"
#include "daemon/capture/time_allowance.h"
#include "daemon/profile/raw_stack_table.h"
#include "daemon/runtime/code_namer.h"
#include "daemon/runtime/java_code.h"
#include "daemon/runtime/runtime_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/hotspot/layout.h"

namespace profd {

// The frames of Java code that was sampled: names, files and lines, inlined
// methods among them, read from the processes while they live, by a thread that
// may be given up. A stack's frames are read together. Not thread-safe.
class JavaNames final : public CodeNamer {
 public:
  // Reading for one process, and for all, takes so much time at once, and that
  // share of the time that passes.
  static constexpr std::chrono::milliseconds kAtOnceOfOne{500};
  static constexpr std::chrono::milliseconds kAtOnce{1000};
  static constexpr double kShareOfOne = 0.1;
  static constexpr double kShare = 0.2;
  // Memory that is read for one stack.
  static constexpr size_t kMaxBytes = size_t{4} << 20;
  // Frames that are known, of all processes, some 150 bytes each, and what was
  // read of their code. With more those of the process that has most go.
  static constexpr size_t kMaxPlaces = 131072;
  static constexpr size_t kMaxCodeBytes = size_t{64} << 20;
  // Interpreted methods and stubs have no number of their own: others may come
  // in their place, so that they are looked at again.
  static constexpr std::chrono::milliseconds kFresh{500};

  // `names` makes the frames; it outlives this.
  explicit JavaNames(RuntimeNames& names);

  void Add(const ksym::ProcessId& process, const ksym::HotspotLayout& layout);
  void Forget(const ksym::ProcessId& process);

  // A frame that could not be read has no name. Some 40 us, and 5 for each
  // frame that is not known.
  std::vector<CodeFrames> FramesOf(const ksym::ProcessId& process,
                                   std::span<const RuntimeCode> codes) override;

  // Since the start.
  struct Statistics {
    uint64_t places = 0;       // that have a name
    uint64_t gone = 0;         // each time that one was not there any more
    uint64_t out_of_time = 0;  // each time that there was none for one
    // Compiled methods that are shown without what is inlined, as that is...
    uint64_t not_described = 0;
    uint64_t too_much = 0;
    uint64_t corrupt = 0;
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  struct Key {
    RawFrameKind kind = kNativeCode;
    uint64_t code = 0;
    uint32_t index = 0;
    bool is_leaf = false;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Frames = std::vector<RawFrame>;
  struct Process {
    ksym::HotspotLayout layout;
    // Shared with the thread that reads, which keeps it when it is given up.
    std::shared_ptr<JavaCode> code;
    TimeAllowance time;
    // Its memory did not answer once. As it may be meant to, and threads that
    // wait for it are few, nothing is read of it any more.
    bool is_silent = false;
    std::map<Key, Frames> places;
    SteadyClock::time_point since;  // the oldest of those without a number
    uint64_t forgettings = 0;       // of names_, when they were made
  };
  struct Reading;

  static Key KeyOf(const RuntimeCode& code);
  void DropStale(Process& process);
  void Read(const ksym::ProcessId& id, Process& process,
            std::vector<RuntimeCode> wanted);
  void Keep(Process& process, const Reading& reading);
  void MakeRoom();
  void Count(const JavaFrames& found);

  RuntimeNames& names_;
  ForeignMemory memory_;
  TimeAllowance time_;
  std::map<ksym::ProcessId, Process> processes_;
  size_t places_ = 0;  // of all processes
  Statistics statistics_;
};

}  // namespace profd
