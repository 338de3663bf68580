// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/java_names.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "bpf/runtime/hotspot_abi.h"

namespace profd {

static_assert(kJavaCompiled == HOTSPOT_FRAME_COMPILED);
static_assert(kJavaInterpreted == HOTSPOT_FRAME_INTERPRETED);
static_assert(kJavaStub == HOTSPOT_FRAME_STUB);
static_assert(kJavaTagShift == HOTSPOT_TAG_SHIFT);

// All that the thread that reads needs and finds: it may be at it when nobody
// waits any more.
struct JavaNames::Reading {
  uint32_t pid = 0;
  std::shared_ptr<JavaCode> code;
  std::vector<RuntimeCode> wanted;
  // As many as were read before there was no more to be read.
  std::vector<JavaFrames> found;

  void Run() {
    const ThreadMemory memory(pid, kMaxBytes);
    for (const RuntimeCode& one : wanted) {
      JavaFrames frames = code->FramesOf(memory, one);
      if (memory.is_used_up()) break;
      found.push_back(std::move(frames));
    }
  }
};

JavaNames::JavaNames(RuntimeNames& names)
    : names_(names), time_(kAtOnce, kShare, SteadyClock::now()) {}

void JavaNames::Add(const ksym::ProcessId& process,
                    const ksym::HotspotLayout& layout) {
  const auto now = SteadyClock::now();
  processes_.insert_or_assign(
      process, Process{.layout = layout,
                       .code = std::make_shared<JavaCode>(layout),
                       .time = TimeAllowance(kAtOnceOfOne, kShareOfOne, now),
                       .is_silent = false,
                       .places = {},
                       .since = now});
}

void JavaNames::Forget(const ksym::ProcessId& process) {
  const auto gone = processes_.extract(process);
  if (!gone.empty()) places_ -= gone.mapped().places.size();
}

JavaNames::Key JavaNames::KeyOf(const RuntimeCode& code) {
  return {.kind = code.kind,
          .code = code.code,
          .index = code.index,
          .is_leaf = code.native == 0};
}

void JavaNames::DropStale(Process& process) {
  // Frames that were forgotten have numbers that nobody knows.
  const bool is_forgotten =
      std::exchange(process.forgettings, names_.forgettings()) !=
      names_.forgettings();
  const auto now = SteadyClock::now();
  const bool is_old = now >= process.since + kFresh;
  if (!is_forgotten && !is_old) return;
  process.since = now;
  places_ -= std::erase_if(process.places, [&](const auto& place) {
    return is_forgotten || place.first.kind != kJavaCompiled;
  });
}

// Forgets the places, or the code, of the process that has most of it, when all
// together have as much as may be.
void JavaNames::MakeRoom() {
  const auto largest = [this](auto size) -> Process& {
    return std::ranges::max_element(
               processes_, {},
               [&](const auto& entry) { return size(entry.second); })
        ->second;
  };
  if (places_ >= kMaxPlaces) {
    Process& most = largest([](const Process& p) { return p.places.size(); });
    places_ -= std::exchange(most.places, {}).size();
  }
  size_t bytes = 0;
  for (const auto& [id, process] : processes_) bytes += process.code->bytes();
  if (bytes < kMaxCodeBytes) return;
  Process& most = largest([](const Process& p) { return p.code->bytes(); });
  most.code = std::make_shared<JavaCode>(most.layout);
}

void JavaNames::Count(const JavaFrames& found) {
  if (found.frames.empty()) {
    ++statistics_.gone;
    return;
  }
  ++statistics_.places;
  switch (found.inlining) {
    case JavaInlining::kKnown:
      break;
    case JavaInlining::kNotDescribed:
      ++statistics_.not_described;
      break;
    case JavaInlining::kTooMuch:
      ++statistics_.too_much;
      break;
    case JavaInlining::kCorrupt:
      ++statistics_.corrupt;
      break;
  }
}

void JavaNames::Keep(Process& process, const Reading& reading) {
  for (size_t i = 0; i < reading.found.size(); ++i) {
    const JavaFrames& found = reading.found[i];
    Count(found);
    if (found.frames.empty()) continue;
    Frames frames;
    for (const JavaFrames::Frame& frame : found.frames) {
      frames.push_back({.kind = frame.kind, .value = names_.IdOf(frame.frame)});
    }
    if (process.places
            .insert_or_assign(KeyOf(reading.wanted[i]), std::move(frames))
            .second) {
      ++places_;
    }
  }
}

void JavaNames::Read(const ksym::ProcessId& id, Process& process,
                     std::vector<RuntimeCode> wanted) {
  const auto begin = SteadyClock::now();
  const bool has_time = time_.HasAny(begin) && process.time.HasAny(begin);
  if (!has_time || process.is_silent) {
    statistics_.out_of_time += wanted.size();
    return;
  }
  MakeRoom();
  auto reading = std::make_shared<Reading>();
  reading->pid = id.pid;
  reading->code = process.code;
  reading->wanted = std::move(wanted);
  const bool is_done = memory_.Run([reading] { reading->Run(); });
  const auto time = SteadyClock::now() - begin;
  time_.Spend(time);
  process.time.Spend(time);
  if (!is_done) {
    process.is_silent = true;
    // The one that is left behind has it.
    process.code = std::make_shared<JavaCode>(process.layout);
    statistics_.out_of_time += reading->wanted.size();
    return;
  }
  statistics_.out_of_time += reading->wanted.size() - reading->found.size();
  Keep(process, *reading);
}

std::vector<CodeFrames> JavaNames::FramesOf(
    const ksym::ProcessId& id, std::span<const RuntimeCode> codes) {
  const auto found = processes_.find(id);
  Process* process = found == processes_.end() ? nullptr : &found->second;
  if (process == nullptr) {
    // It ended before its last stacks came.
    statistics_.gone += codes.size();
  } else {
    DropStale(*process);
    // Recursive methods are often at one place.
    std::map<Key, RuntimeCode> wanted;
    for (const RuntimeCode& code : codes) {
      const Key key = KeyOf(code);
      if (!process->places.contains(key)) wanted.emplace(key, code);
    }
    if (!wanted.empty()) {
      const auto values = std::views::values(wanted);
      Read(id, *process, {values.begin(), values.end()});
    }
  }
  std::vector<CodeFrames> all;
  for (const RuntimeCode& code : codes) {
    // A frame without a name is one all the same.
    Frames frames;
    if (process != nullptr) {
      const auto place = process->places.find(KeyOf(code));
      if (place != process->places.end()) frames = place->second;
    }
    if (frames.empty()) {
      frames.push_back({.kind = code.kind, .value = names_.IdOf({})});
    }
    all.push_back({.native = code.native, .frames = std::move(frames)});
  }
  return all;
}

}  // namespace profd
