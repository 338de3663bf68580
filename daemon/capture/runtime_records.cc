// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/runtime_records.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/capture/sampled_count.h"

namespace profd {
namespace {

// Runs that wait for the stack that they belong to; beyond so many new ones are
// dropped. A stack that did not fit the ring never comes.
constexpr size_t kMaxWaiting = 4096;

NativeEnd EndOf(const RawStack& stack) {
  return stack.end == StackEnd::kOutermost ||
                 stack.end == StackEnd::kZeroFramePointer
             ? NativeEnd::kWhole
             : NativeEnd::kCut;
}

// The items of code that runtimes made.
std::vector<RuntimeCode> CodesOf(std::span<const runtime_item> items) {
  std::vector<RuntimeCode> codes;
  for (const runtime_item& item : items) {
    if ((item.kind & RUNTIME_ITEM_CODE) == 0) continue;
    codes.push_back({.native = item.native,
                     .kind = static_cast<RawFrameKind>(item.kind >>
                                                       RUNTIME_ITEM_KIND_SHIFT),
                     .code = item.word,
                     .index = item.index});
  }
  return codes;
}

}  // namespace

void RuntimeRecords::Follow(UnwindTables& tables, Wanted wanted) {
  tables.TellOfRuntimes(
      {.of_file =
           [this, wanted](const TableFile& file) {
             if (wanted.cpython) Know(cpython_.AddFile(file));
           },
       .of_process =
           [this, wanted](const ksym::ProcessId& process, uint64_t load_bias,
                          const ksym::FileRuntimes& runtimes) {
             if (wanted.cpython && runtimes.cpython) {
               Know(cpython_.Add(process, load_bias, *runtimes.cpython));
             }
             if (wanted.v8 && runtimes.v8 != nullptr &&
                 v8_.Add(process, *runtimes.v8)) {
               Know(RUNTIME_KNOWN_CODE);
             }
             if (wanted.hotspot && runtimes.hotspot) {
               hotspot_.Add(process, load_bias, *runtimes.hotspot);
               Poll();
             }
           }});
}

void RuntimeRecords::Add(const profile_record& record, size_t bytes) {
  if (record.type == PROFILE_RECORD_CODE) {
    cpython_.AddCode(reinterpret_cast<const profile_code_record&>(record),
                     bytes);
  } else if (record.type == PROFILE_RECORD_V8) {
    v8_.AddCode(reinterpret_cast<const profile_v8_record&>(record), bytes);
  } else if (record.type == PROFILE_RECORD_RUNTIME ||
             record.type == PROFILE_RECORD_RUNTIME_COPY) {
    AddFrames(reinterpret_cast<const profile_runtime_record&>(record), bytes);
  }
}

// Never taken back; until then samples look nothing up.
void RuntimeRecords::Know(uint32_t bits) {
  __atomic_fetch_or(known_, bits, __ATOMIC_RELAXED);
}

void RuntimeRecords::Poll() {
  if (hotspot_.Publish()) Know(RUNTIME_KNOWN_CODE);
}

void RuntimeRecords::Withdraw(const ksym::ProcessId& id) {
  // Its functions go even if it never was in the map: the sampler finds the
  // runtime of new processes by their files.
  names_.Forget(id);
  v8_.Forget(id);
  hotspot_.Forget(id);
  cpython_.Forget(id);
}

void RuntimeRecords::ForgetCodes(const std::vector<uint64_t>& codes) {
  // The sampler sends code that is not in the map: so it comes again, with its
  // names.
  for (const uint64_t code : codes) bpf_map_delete_elem(codes_, &code);
}

void RuntimeRecords::EndInterval() {
  cpython_.EndInterval();
  names_.ForgetOldFrames();
  ForgetCodes(names_.TakeDropped());
  v8_.EndInterval();
  copied_code_.EndInterval();
}

void RuntimeRecords::ReadNames(SteadyClock::duration time) {
  v8_.ReadNames(time);
  ForgetCodes(v8_.TakeDropped());
}

void RuntimeRecords::AddFrame(RuntimeFrameId id, RuntimeFrameTable& frames) {
  while (id != 0) {
    const auto [at, is_new] = frames.try_emplace(id);
    if (!is_new) return;
    if (auto frame = v8_.Get(id)) {
      at->second = std::move(*frame);
    } else {
      at->second = names_.Get(id);
    }
    id = at->second.caller;
  }
}

void RuntimeRecords::AddCodeFrames(const ksym::ProcessId& process,
                                   std::span<const RuntimeCode> code,
                                   RuntimeRuns& runs) {
  std::map<CodeNamer*, std::vector<RuntimeCode>> codes;
  for (const RuntimeCode& one : code) {
    const auto namer = code_namers_.find(one.kind);
    if (namer == code_namers_.end()) continue;
    codes[namer->second].push_back(one);
  }
  for (const auto& [namer, wanted] : codes) {
    for (CodeFrames& frames : namer->FramesOf(process, wanted)) {
      runs.code.push_back(std::move(frames));
    }
  }
  std::ranges::sort(runs.code, {}, &CodeFrames::native);
}

std::optional<RuntimeRuns> RuntimeRecords::Decode(
    const profile_runtime_record& record, size_t bytes) {
  if (bytes < PROFILE_RUNTIME_RECORD_BYTES(size_t{0}) ||
      record.items > RUNTIME_MAX_ITEMS ||
      bytes < PROFILE_RUNTIME_RECORD_BYTES(size_t{record.items})) {
    return std::nullopt;
  }
  RuntimeRuns runs = {.runs = {},
                      .word_below = record.word_below,
                      .is_cut = (record.flags & RUNTIME_FRAMES_CUT) != 0,
                      .waits = (record.flags & RUNTIME_WAITS_FOR_LOCK) != 0};
  const ksym::ProcessId process = {
      record.process.tgid, record.process.exec_count, record.process.start_ns};
  const auto items = std::span(record.item).first(record.items);
  // The walk of a copy begins anew, and may find other native frames.
  if (record.header.type == PROFILE_RECORD_RUNTIME) {
    AddCodeFrames(process, CodesOf(items), runs);
  }
  RuntimeRun run;
  for (const runtime_item& item : items) {
    if ((item.kind & RUNTIME_ITEM_CODE) != 0) continue;
    if (item.kind == RUNTIME_ITEM_FRAME) {
      run.frames.push_back(names_.FrameOf(item.word, item.index));
      continue;
    }
    run.anchor = item.word;
    run.is_torn = (item.kind & RUNTIME_ITEM_TORN) != 0;
    if (item.native != RUNTIME_NOT_PLACED) run.native = item.native;
    runs.runs.push_back(std::exchange(run, {}));
  }
  // The run that the bound cut off has no end.
  run = {};
  run.is_torn = true;
  if (runs.is_cut) runs.runs.push_back(std::move(run));
  return runs;
}

void RuntimeRecords::AddFrames(const profile_runtime_record& record,
                               size_t bytes) {
  auto runs = Decode(record, bytes);
  if (!runs) return;
  auto& waiting = record.header.type == PROFILE_RECORD_RUNTIME_COPY
                      ? of_copies_
                      : of_stacks_;
  // The stack's own record is behind it in the ring, unless that was full then:
  // runs that nobody comes for stay, and must not grow.
  if (waiting.size() < kMaxWaiting) waiting[record.id] = std::move(*runs);
}

void RuntimeRecords::CountRuns(const RuntimeRuns& all, NativeEnd end) {
  runs_.all += all.runs.size();
  runs_.torn += static_cast<uint64_t>(
      std::ranges::count_if(all.runs, &RuntimeRun::is_torn));
  if (all.is_cut) {
    // Decode() has closed the run that was cut off as a torn one.
    --runs_.torn;
    ++runs_.cut;
  }
  runs_.not_placed += CountLeftOut(all.runs, end);
}

RuntimeStatistics RuntimeRecords::statistics() const {
  RuntimeStatistics statistics = names_.statistics();
  const JavaScriptNames::Statistics& javascript = v8_.statistics();
  const JavaNames::Statistics& java = java_.statistics();
  statistics.codes += javascript.codes + java.places;
  statistics.codes_unread += javascript.codes_unread + java.gone;
  statistics.codes_refused += javascript.codes_refused + java.out_of_time;
  statistics.inlined = {.not_described = java.not_described,
                        .too_much = java.too_much,
                        .corrupt = java.corrupt};
  statistics.code_bytes += javascript.bytes;
  statistics.frames_unnamed += javascript.frames_unnamed;
  statistics.processes = cpython_.size() + v8_.size() + hotspot_.published();
  statistics.runs = runs_;
  statistics.sleepers = cpython_.sleepers();
  const RuntimeStatistics::Sleepers& in_code = copied_code_.sleepers();
  statistics.sleepers.read += in_code.read;
  statistics.sleepers.went_on += in_code.went_on;
  statistics.sleepers.out_of_time += in_code.out_of_time;
  statistics.copies = copied_code_.copies();
  return statistics;
}

// All runs that can have their places do.
std::vector<RawFrame> RuntimeRecords::Merge(const RawStack& stack,
                                            RuntimeRuns& all) {
  MarkGaps(all.runs);
  CountRuns(all, EndOf(stack));
  std::vector<RawFrame> frames =
      MergeFrames(stack.frames, all.runs, all.code, EndOf(stack));
  if (all.waits) frames.insert(frames.begin(), {.kind = kLockWait});
  return frames;
}

std::vector<RawFrame> RuntimeRecords::MergeStack(uint64_t id,
                                                 const RawStack& stack) {
  auto runs = of_stacks_.extract(id);
  if (runs.empty()) return {};
  return Merge(stack, runs.mapped());
}

std::vector<RawFrame> RuntimeRecords::MergeCopy(
    const profile_copy_record& copy, const NativeStack& native,
    std::span<const RuntimeCode> code, const RawStack& stack) {
  RuntimeRuns runs;
  if (auto sent = of_copies_.extract(copy.copy); !sent.empty()) {
    runs = std::move(sent.mapped());
  } else {
    runs = cpython_.ReadSleeper(copy).value_or(RuntimeRuns());
  }
  const size_t frames =
      std::min(native.stack_pointers.size(), stack.frames.size());
  PlaceRuns({.stack_pointers = native.stack_pointers.first(frames),
             .memory = native.memory},
            runs);
  v8_.FindFrames(ProcessOf(copy.key), native, stack, runs);
  AddCodeFrames(ProcessOf(copy.key), code, runs);
  if (runs.runs.empty() && runs.code.empty() && !runs.waits) return {};
  return Merge(stack, runs);
}

}  // namespace profd
