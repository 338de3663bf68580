// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sleeping_frames.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "daemon/base/steady_clock.h"
#include "daemon/capture/sampled_count.h"
#include "daemon/capture/thread_runs.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/runtime/cpython/code_object.h"
#include "ksym/runtime/cpython/thread_frames.h"

namespace profd {
namespace {

using ksym::CpythonFrames;
using ksym::CpythonLayout;

// With a secret: no process can make code that has the number of another's.
uint64_t MixCode(uint64_t hash, uint64_t word) {
  return ksym::HashWords(hash, word);
}

// The code object's words that change when another one takes its place; as
// bpf/runtime/cpython_code.bpf.h chooses them. Nothing: it cannot be read.
std::optional<uint64_t> HashOfCode(const ksym::Memory& memory,
                                   const CpythonLayout& layout,
                                   ksym::Address code) {
  std::array<std::byte, 256> head = {};
  const size_t bytes = std::min<size_t>(layout.code_bytes, head.size());
  if (!memory.Read(code, std::span(head).first(bytes))) return std::nullopt;
  const auto word = [&](size_t offset, size_t size) {
    uint64_t value = 0;
    if (offset + size <= bytes) {
      std::memcpy(&value, head.data() + offset, size);
    }
    return value;
  };
  uint64_t hash = code.value;
  for (const uint16_t offset :
       {layout.code_size, layout.code_consts, layout.code_file,
        layout.code_name, layout.code_lines}) {
    hash = MixCode(hash, word(offset, 8));
  }
  hash = MixCode(hash, word(layout.code_first_line, 4));
  return MixCode(hash,
                 layout.code_version == 0 ? 0 : word(layout.code_version, 4));
}

}  // namespace

// All that the thread that reads needs and finds: it may be at it when nobody
// waits any more.
struct SleepingFrames::Reading {
  struct Code {
    uint64_t id = 0;
    ksym::CpythonCode names;
  };

  ksym::CpythonThread thread;
  uint32_t tid = 0;
  uint32_t runs = 0;
  uint64_t process = 0;  // a hash
  MappedInterpreters interpreters;
  std::shared_ptr<KnownCodes> known;

  const MappedInterpreter* used = nullptr;  // one of interpreters
  std::optional<CpythonFrames> frames;
  // By the address of the code.
  std::unordered_map<uint64_t, uint64_t, ksym::NumberHash> ids;
  std::vector<Code> codes;  // that were not known
  bool went_on = false;

  void Run() {
    const ThreadMemory memory(tid, kMaxBytes);
    for (const MappedInterpreter& interpreter : *interpreters) {
      thread.load_bias = interpreter.load_bias;
      frames = ksym::ReadCpythonFrames(memory, interpreter.found, thread);
      if (!frames) continue;
      used = &interpreter;
      for (const ksym::CpythonRun& run : frames->runs) {
        for (const ksym::CpythonFrame& frame : run.frames) {
          ReadCode(memory, interpreter.found.layout, frame.code);
        }
      }
      break;
    }
    // Last: what was read before is of the time of the stack only if the thread
    // did not run meanwhile.
    went_on = ReadThreadRuns(tid) != runs;
  }

  void ReadCode(const ksym::Memory& memory, const CpythonLayout& layout,
                ksym::Address address) {
    const auto [at, is_first] = ids.try_emplace(address.value, 0);
    if (!is_first) return;
    const auto hash = HashOfCode(memory, layout, address);
    if (!hash) return;
    uint64_t id = MixCode(process, *hash);
    std::optional<ksym::CpythonCode> names;
    const auto read = [&] {
      auto code = ksym::ReadCpythonCode(memory, layout, address);
      if (code) names = std::move(*code);
    };
    if (layout.code_version == 0) {
      // Only its names tell it from code that was there before.
      read();
      if (!names) return;
      id = MixCode(id, ksym::HashText(names->name));
      id = MixCode(id, ksym::HashText(names->file));
    }
    at->second = id;
    if (known->contains(id)) return;
    if (!names) read();
    if (!names) return;
    codes.push_back({.id = id, .names = std::move(*names)});
    known->insert(id);
  }
};

bool SleepingFrames::HasTimeFor(const ksym::ProcessId& process) const {
  const auto spent = spent_on_.find(process);
  return spent_ < kMaxTime &&
         (spent == spent_on_.end() || spent->second < kMaxTimeOfOne);
}

void SleepingFrames::Spend(const ksym::ProcessId& process,
                           std::chrono::nanoseconds time) {
  spent_ += time;
  spent_on_[process] += time;
}

std::optional<RuntimeRuns> SleepingFrames::Read(
    const profile_copy_record& copy, const MappedInterpreters& interpreters) {
  if (copy.thread == 0 || !interpreters || interpreters->empty()) {
    return std::nullopt;
  }
  const ksym::ProcessId process = ProcessOf(copy.key);
  if (!HasTimeFor(process)) {
    ++statistics_.out_of_time;
    return std::nullopt;
  }
  auto reading = std::make_shared<Reading>();
  reading->thread.pointer = {copy.thread};
  reading->tid = copy.tid;
  reading->runs = copy.runs;
  reading->process =
      MixCode(MixCode(process.start_ns, process.pid), process.exec_count);
  reading->interpreters = interpreters;
  reading->known = known_;
  const auto begin = SteadyClock::now();
  const bool is_done = memory_.Run([reading] { reading->Run(); });
  Spend(process, SteadyClock::now() - begin);
  if (!is_done) {
    // The one that is left behind has it.
    known_ = std::make_shared<KnownCodes>();
    ++statistics_.out_of_time;
    return std::nullopt;
  }
  for (auto& [id, names] : reading->codes) {
    names_.Add(process, id, std::move(names));
  }
  const std::optional<ksym::CpythonFrames>& frames = reading->frames;
  if (!frames) return std::nullopt;
  if (reading->went_on) {
    ++statistics_.went_on;
    return std::nullopt;
  }
  ++statistics_.read;
  return Decode(copy, *reading, *frames);
}

RuntimeRuns SleepingFrames::Decode(const profile_copy_record& copy,
                                   const Reading& reading,
                                   const ksym::CpythonFrames& frames) {
  const ksym::CpythonInterpreter& interpreter = reading.used->found;
  const uint64_t runtime = reading.used->load_bias + interpreter.runtime.value;
  RuntimeRuns runs = {
      .runs = {},
      .word_below = interpreter.layout.runs == CpythonLayout::Runs::kEach
                        ? interpreter.frame_word.below_cfa
                        : 0u,
      .is_cut = frames.is_cut,
      .waits = copy.timed_wait - runtime < interpreter.runtime_bytes};
  for (const ksym::CpythonRun& from : frames.runs) {
    RuntimeRun run;
    run.anchor = from.anchor;
    run.is_torn = from.is_torn;
    for (const ksym::CpythonFrame& frame : from.frames) {
      run.frames.push_back(
          names_.FrameOf(reading.ids.at(frame.code.value), frame.index));
    }
    runs.runs.push_back(std::move(run));
  }
  return runs;
}

void SleepingFrames::EndInterval() {
  // Names may be forgotten from here on; those that are needed are read again.
  known_ = std::make_shared<KnownCodes>();
  spent_ = {};
  spent_on_.clear();
}

}  // namespace profd
