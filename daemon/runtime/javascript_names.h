// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/profile/runtime_frame.h"
#include "daemon/runtime/code_namer.h"
#include "daemon/runtime/runtime_names.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/memory.h"
#include "ksym/runtime/v8/code.h"
#include "ksym/runtime/v8/function.h"
#include "ksym/runtime/v8/layout.h"
#include "ksym/runtime/v8/script.h"

namespace profd {

// What named a function while it ran: words of its ScopeInfo, or of its name,
// and of the name in the ScopeInfo. See v8_witness in bpf/runtime/v8_abi.h.
struct V8Witness {
  std::array<uint64_t, 4> named = {};
  std::array<uint64_t, 3> names = {};
  std::array<uint64_t, 4> text = {};
};

// Code of V8 that was sampled, as it was then.
struct JavaScriptCode {
  uint64_t id = 0;  // the sampler's, which has the process in it
  ksym::ProcessId process;
  const ksym::V8Layout* layout = nullptr;  // not null
  ksym::V8Word shared;                     // its SharedFunctionInfo
  ksym::V8FunctionIdentity identity;
  // Interpreted code has its BytecodeArray here, compiled code an address in
  // it instead.
  std::optional<ksym::V8Word> bytecode;
  ksym::Address pc;
  // The function was found later than the frame: it has to be the code's.
  bool is_late = false;
  std::optional<V8Witness> witness;
};

// The names and lines of sampled code of V8. They are read from the process as
// it is some time later. What was freed or moved by then has no name, but a
// count: its function, its code, or both are not where they were. Stacks come
// before the names, so a frame has its number first. Not thread-safe.
class JavaScriptNames final : public CodeNamer {
 public:
  // The most code that is known, and what its names and tables take. With more,
  // what was not used in this interval goes.
  static constexpr size_t kMaxCodes = size_t{1} << 16;
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  // Code that waits to be read; beyond so much the sampler sends it again.
  static constexpr size_t kMaxWaiting = size_t{1} << 14;
  // So often it is tried in vain.
  static constexpr uint32_t kMaxTries = 3;

  // `names` gives the numbers of frames, and outlives this.
  explicit JavaScriptNames(RuntimeNames& names) : names_(&names) {}

  void Add(const JavaScriptCode& code);
  bool HasWaiting() const { return !waiting_.empty(); }
  // Reads what waits, each process's after the other, until `is_over` says so:
  // it is asked before each. `memory_of`: of a process, valid until the next
  // call; as it is now, or as it was a moment ago.
  enum class Freshness : uint8_t { kRecent, kNow };
  using MemoryOf =
      std::function<const ksym::Memory&(uint32_t pid, Freshness freshness)>;
  void Read(const MemoryOf& memory_of, const std::function<bool()>& is_over);
  // Code that the sampler should send again, since the last call.
  std::vector<uint64_t> TakeDropped() { return std::exchange(dropped_, {}); }
  void Forget(const ksym::ProcessId& process);

  std::vector<CodeFrames> FramesOf(const ksym::ProcessId& process,
                                   std::span<const RuntimeCode> codes) override;
  // The frame of that code. `index`: of interpreted code the offset in the byte
  // code, as frames have it; of compiled code 0, or kNoCall: it is where
  // the CPU was and not behind a call.
  static constexpr uint32_t kNoCall = 1;
  RuntimeFrameId FrameOf(uint64_t code, uint32_t index);
  // What the frame is by now; nothing: the number is not from here.
  std::optional<RuntimeFrame> Get(RuntimeFrameId id);
  // Begins the next interval, after each drain. Beyond RuntimeNames::kMaxFrames
  // those that were made before the drain before are forgotten.
  void EndInterval();

  struct Statistics {
    uint64_t codes = 0;           // that were read, since the start
    uint64_t codes_unread = 0;    // tries in vain
    uint64_t codes_refused = 0;   // that there was no room for, or any more
    uint64_t frames_unnamed = 0;  // each time that one was needed
    uint64_t bytes = 0;           // now
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  using Script = std::shared_ptr<const ksym::V8Script>;
  // Several engines of a process give scripts the same numbers.
  struct ScriptKey {
    uint64_t address = 0;
    uint64_t source = 0;  // its word
    int32_t id = 0;
    friend auto operator<=>(const ScriptKey&, const ScriptKey&) = default;
  };
  // A function, and a place in it.
  struct Place {
    std::string name;
    Script script;  // null: it has none
    std::optional<uint32_t> begin;
    std::optional<uint32_t> offset;
  };
  struct Code {
    JavaScriptCode sampled;
    uint32_t tries = 0;
    uint64_t used = 0;  // the last interval in which it was asked for
    // Innermost first; empty: it was not read.
    std::vector<Place> places;
    bool is_baseline = false;
    std::vector<std::byte> positions;  // of interpreted code
    size_t bytes = 0;
  };
  // What the code of one process has in common.
  struct Process {
    std::set<uint64_t> codes;
    std::map<ScriptKey, Script> scripts;
    size_t script_bytes = 0;
    ksym::V8CodeFinder finder;
  };
  struct Key {
    uint64_t code = 0;
    uint32_t index = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  bool MakeRoom();
  void Drop(uint64_t id);
  void ForgetScripts(Process& process);
  void ReadOne(const MemoryOf& memory_of, Code& code);
  static bool IsSame(const ksym::V8Heap& heap, const JavaScriptCode& sampled);
  bool ReadCode(const ksym::V8Heap& heap, Code& code, Process& process);
  bool AddPlace(const ksym::V8Heap& heap, const ksym::V8CodeFrame& frame,
                Code& code, Process& process);
  Script ScriptOf(const ksym::V8Heap& heap, ksym::V8Word word,
                  Process& process);
  static RuntimeFrame FrameAt(const Code& code, const Place& place,
                              uint32_t index);

  RuntimeNames* names_;
  std::unordered_map<uint64_t, Code, ksym::NumberHash> codes_;
  std::map<ksym::ProcessId, Process> processes_;
  std::deque<uint64_t> waiting_;
  std::vector<uint64_t> dropped_;
  uint64_t interval_ = 1;
  std::map<Key, RuntimeFrameId> ids_;
  // What frames are of, and of those that will be forgotten next.
  std::unordered_map<RuntimeFrameId, Key> frames_;
  std::unordered_map<RuntimeFrameId, Key> old_frames_;
  Statistics statistics_;
};

}  // namespace profd
