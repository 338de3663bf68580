// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/runtime_records.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "bpf/unwind_abi.h"
#include "daemon/capture/sampled_count.h"
#include "ksym/runtime/cpython/code_object.h"
#include "ksym/runtime/memory.h"

namespace profd {
namespace {

using ksym::CpythonLayout;
using ksym::CpythonOffsets;

static_assert(CpythonOffsets::kType == CPYTHON_TYPE);
static_assert(CpythonOffsets::kSize == CPYTHON_TEXT_LENGTH);
static_assert(CpythonOffsets::kSize == CPYTHON_BYTES_LENGTH);
static_assert(CpythonOffsets::kTextState == CPYTHON_TEXT_STATE);
static_assert(CpythonOffsets::kBytesData == CPYTHON_BYTES_DATA);

static_assert(kJavaScriptCode == V8_FRAME_KIND);
static_assert(ksym::V8Frame::kContext == V8_FRAME_CONTEXT);
static_assert(ksym::V8Frame::kFunction == V8_FRAME_FUNCTION);
static_assert(ksym::V8Frame::kBytecode == V8_FRAME_BYTECODE);
static_assert(ksym::V8Frame::kOffset == V8_FRAME_OFFSET);
static_assert(ksym::V8Offsets::kMapType == V8_MAP_TYPE);
static_assert(ksym::V8Offsets::kScriptId == V8_SCRIPT_ID);

template <typename Ours, typename Sampler>
constexpr bool IsSame(Ours ours, Sampler sampler) {
  return static_cast<uint64_t>(ours) == static_cast<uint64_t>(sampler);
}
using Runs = CpythonLayout::Runs;
static_assert(IsSame(Runs::kToEntry, CPYTHON_RUNS_TO_ENTRY));
static_assert(IsSame(Runs::kToShim, CPYTHON_RUNS_TO_SHIM));
static_assert(IsSame(Runs::kEach, CPYTHON_RUNS_EACH));
using Instruction = CpythonLayout::Instruction;
static_assert(IsSame(Instruction::kAddress, CPYTHON_INSTRUCTION_ADDRESS));
static_assert(IsSame(Instruction::kBytes, CPYTHON_INSTRUCTION_BYTES));
static_assert(IsSame(Instruction::kUnits, CPYTHON_INSTRUCTION_UNITS));
using ThreadKind = ksym::CpythonThreadPlace::Kind;
static_assert(IsSame(ThreadKind::kNone, CPYTHON_THREAD_NONE));
static_assert(IsSame(ThreadKind::kKey, CPYTHON_THREAD_KEY));
static_assert(IsSame(ThreadKind::kGlobal, CPYTHON_THREAD_GLOBAL));
static_assert(IsSame(ThreadKind::kNearThread, CPYTHON_THREAD_NEAR));
static_assert(IsSame(ThreadKind::kInModule, CPYTHON_THREAD_IN_MODULE));
static_assert(IsSame(ThreadKind::kByOffset, CPYTHON_THREAD_BY_OFFSET));

// Runs that wait for the stack that they belong to; beyond so many new ones are
// dropped. A stack that did not fit the ring never comes.
constexpr size_t kMaxWaiting = 4096;
// Linkers put the first byte of a program that stays where it is linked there
// or behind it, and of others at 0.
constexpr uint64_t kFixedProgramsBegin = 0x400000;

unwind_process KeyOf(const ksym::ProcessId& id) {
  return {.start_ns = id.start_ns, .tgid = id.pid, .exec_count = id.exec_count};
}

cpython_process DescribeLayout(const CpythonLayout& layout) {
  cpython_process process = {};
  process.thread_frame = layout.thread_frame;
  process.thread_id = layout.thread_id;
  process.cframe_frame = layout.cframe_frame;
  process.cframe_previous = layout.cframe_previous;
  process.frame_bytes = layout.frame_bytes;
  process.frame_code = layout.frame_code;
  process.frame_previous = layout.frame_previous;
  process.frame_instruction = layout.frame_instruction;
  process.frame_owner = layout.frame_owner;
  process.frame_is_entry = layout.frame_is_entry;
  process.code_bytes = layout.code_bytes;
  process.code_size = layout.code_size;
  process.code_consts = layout.code_consts;
  process.code_first_line = layout.code_first_line;
  process.code_first_traceable = layout.code_first_traceable;
  process.code_units = layout.code_units;
  process.code_file = layout.code_file;
  process.code_name = layout.code_name;
  process.code_lines = layout.code_lines;
  process.code_version = layout.code_version;
  process.text_ascii = layout.text_ascii;
  process.text_other = layout.text_other;
  process.has_cframe = layout.has_cframe ? 1 : 0;
  process.runs = static_cast<uint8_t>(layout.runs);
  process.shim_owner = layout.shim_owner;
  process.instruction = static_cast<uint8_t>(layout.instruction);
  return process;
}

cpython_process Describe(const ksym::CpythonInterpreter& interpreter,
                         uint64_t load_bias) {
  cpython_process process = DescribeLayout(interpreter.layout);
  for (size_t i = 0; i < interpreter.threads.size(); ++i) {
    const ksym::CpythonThreadPlace& place = interpreter.threads[i];
    process.threads[i] = {.address = load_bias + place.address.value,
                          .distance = place.distance,
                          .kind = static_cast<uint32_t>(place.kind)};
  }
  process.code_type = load_bias + interpreter.code_type.value;
  process.runtime = load_bias + interpreter.runtime.value;
  process.runtime_bytes = interpreter.runtime_bytes;
  if (interpreter.frame_type) {
    process.frame_type = load_bias + interpreter.frame_type->value;
  }
  process.word_below = interpreter.frame_word.below_cfa;
  process.word_offset = interpreter.frame_word.offset;
  return process;
}

NativeEnd EndOf(const RawStack& stack) {
  return stack.end == StackEnd::kOutermost ||
                 stack.end == StackEnd::kZeroFramePointer
             ? NativeEnd::kWhole
             : NativeEnd::kCut;
}

ksym::PieceMemory MemoryOf(const profile_code_record& record) {
  const std::array<std::span<const uint8_t>, RUNTIME_PIECES> rooms = {
      record.head, record.name, record.file, record.lines};
  ksym::PieceMemory memory;
  for (size_t i = 0; i < rooms.size(); ++i) {
    const size_t size = std::min<size_t>(record.bytes[i], rooms[i].size());
    memory.Add({record.piece[i]}, std::as_bytes(rooms[i].first(size)));
  }
  return memory;
}

}  // namespace

uint32_t RuntimeRecords::NumberOf(const CpythonLayout& layout) {
  auto at = std::ranges::find(layouts_, layout);
  if (at == layouts_.end()) at = layouts_.insert(at, layout);
  return static_cast<uint32_t>(at - layouts_.begin());
}

void RuntimeRecords::Follow(UnwindTables& tables, Wanted wanted) {
  tables.TellOfRuntimes(
      {.of_file =
           [this, wanted](const TableFile& file) {
             if (wanted.cpython) PublishFile(file);
           },
       .of_process =
           [this, wanted](const ksym::ProcessId& process, uint64_t load_bias,
                          const ksym::FileRuntimes& runtimes) {
             if (wanted.cpython && runtimes.cpython) {
               Publish(process, load_bias, *runtimes.cpython);
             }
             if (wanted.v8 && runtimes.v8 != nullptr) {
               PublishV8(process, *runtimes.v8);
             }
             if (wanted.hotspot && runtimes.hotspot) {
               hotspot_.Add(process, load_bias, *runtimes.hotspot);
               Poll();
             }
           }});
}

void RuntimeRecords::Add(const profile_record& record, size_t bytes) {
  if (record.type == PROFILE_RECORD_CODE) {
    AddCode(reinterpret_cast<const profile_code_record&>(record), bytes);
  } else if (record.type == PROFILE_RECORD_V8) {
    AddV8Code(reinterpret_cast<const profile_v8_record&>(record), bytes);
  } else if (record.type == PROFILE_RECORD_RUNTIME ||
             record.type == PROFILE_RECORD_RUNTIME_COPY) {
    AddFrames(reinterpret_cast<const profile_runtime_record&>(record), bytes);
  }
}

// Lets the sampler find the interpreter in processes that user space has not
// seen yet.
void RuntimeRecords::PublishFile(const TableFile& file) {
  const std::vector<ksym::ElfSegment>& code = file.table.code;
  const std::optional<ksym::CpythonInterpreter>& interpreter =
      file.runtimes.cpython;
  const ksym::Mapping& mapping = file.mapping;
  if (fds_.files < 0 || mapping.inode == 0 || code.empty() || !interpreter) {
    return;
  }
  const auto offset_of = [](const ksym::ElfSegment& segment) {
    return segment.file_offset.value - segment.address.value;
  };
  const uint64_t offset = offset_of(code.front());
  // It would have to be known in which segment an address is.
  if (std::ranges::count(code, offset, offset_of) !=
      static_cast<ptrdiff_t>(code.size())) {
    return;
  }
  runtime_program program = {
      .process = Describe(*interpreter, 0),
      .start_code =
          std::ranges::min(code, {}, &ksym::ElfSegment::address).address.value,
      .code = offset};
  program.process.layout = NumberOf(interpreter->layout);
  const runtime_file key = {
      .inode = mapping.inode,
      .device = uint64_t{mapping.device_major} << 20 | mapping.device_minor};
  // The map first, then the word that has samples look into it. Without room
  // the processes of the file are found one by one (Publish()).
  if (bpf_map_update_elem(fds_.files, &key, &program, BPF_ANY) != 0) return;
  const bool moves = 0 - offset < kFixedProgramsBegin;
  Know(moves ? RUNTIME_KNOWN | RUNTIME_KNOWN_MOVING : RUNTIME_KNOWN);
}

// Never taken back; until then samples look nothing up.
void RuntimeRecords::Know(uint32_t bits) {
  __atomic_fetch_or(known_, bits, __ATOMIC_RELAXED);
}

void RuntimeRecords::Publish(const ksym::ProcessId& id, uint64_t load_bias,
                             const ksym::CpythonInterpreter& interpreter) {
  if (fds_.processes < 0) return;
  const auto at = published_.find(id);
  // A copy, as somebody may be at work with the one that is there.
  auto known = std::make_shared<std::vector<MappedInterpreter>>();
  if (at != published_.end()) *known = *at->second;
  const auto place_of = [](const MappedInterpreter& mapped) {
    return mapped.load_bias + mapped.found.code_type.value;
  };
  const uint64_t place = load_bias + interpreter.code_type.value;
  if (known->size() >= RUNTIME_INTERPRETERS ||
      std::ranges::find(*known, place, place_of) != known->end()) {
    return;
  }
  cpython_process process = Describe(interpreter, load_bias);
  process.layout = NumberOf(interpreter.layout);
  const runtime_interpreter key = {
      .process = KeyOf(id),
      .number = static_cast<uint32_t>(known->size()),
      .reserved = 0};
  if (bpf_map_update_elem(fds_.processes, &key, &process, BPF_ANY) != 0) {
    // There is no room. It is tried again when the process maps more.
    return;
  }
  known->push_back({.found = interpreter, .load_bias = load_bias});
  published_[id] = std::move(known);
  Know(RUNTIME_KNOWN);
}

void RuntimeRecords::PublishV8(const ksym::ProcessId& id,
                               const ksym::V8Layout& layout) {
  if (fds_.v8 < 0 || of_v8_.contains(id)) return;
  const v8_process process = {
      .layout = static_cast<uint32_t>(&layout - ksym::KnownV8Layouts().data()),
      .shared_function_info = layout.shared_function_info,
      .bytecode_array = layout.bytecode_array,
      .function_shared = layout.function_shared,
      .shared_name = layout.shared_name,
      .shared_script = layout.shared_script,
      .shared_literal_id = layout.shared_literal_id,
      .scope_has_positions_first =
          static_cast<uint8_t>(layout.scope_has_positions_first ? 1 : 0),
      .reserved = 0,
      .scope_info = layout.scope_info};
  const unwind_process key = KeyOf(id);
  // Without room it is tried again when the process maps more.
  if (bpf_map_update_elem(fds_.v8, &key, &process, BPF_ANY) != 0) return;
  of_v8_.emplace(id, &layout);
  Know(RUNTIME_KNOWN_CODE);
}

void RuntimeRecords::Poll() {
  if (hotspot_.Publish()) Know(RUNTIME_KNOWN_CODE);
}

void RuntimeRecords::Withdraw(const ksym::ProcessId& id) {
  // Its functions go even if it never was in the map: the sampler finds the
  // runtime of new processes by their files.
  names_.Forget(id);
  javascript_.Forget(id);
  if (of_v8_.erase(id) > 0) {
    const unwind_process key = KeyOf(id);
    bpf_map_delete_elem(fds_.v8, &key);
  }
  hotspot_.Forget(id);
  const auto published = published_.extract(id);
  if (published.empty()) return;
  for (uint32_t i = 0; i < published.mapped()->size(); ++i) {
    const runtime_interpreter key = {
        .process = KeyOf(id), .number = i, .reserved = 0};
    bpf_map_delete_elem(fds_.processes, &key);
  }
}

void RuntimeRecords::EndInterval() {
  sleeping_.EndInterval();
  names_.ForgetOldFrames();
  // The sampler holds them for known, and would not send them again.
  for (const uint64_t code : names_.TakeDropped()) {
    bpf_map_delete_elem(fds_.codes, &code);
  }
  javascript_.EndInterval();
}

const ksym::Memory& RuntimeRecords::PagesOf(uint32_t pid) {
  // What was read some time ago may be something else by now.
  constexpr std::chrono::milliseconds kFresh(2);
  const auto now = SteadyClock::now();
  if (pages_of_ == pid && now < pages_since_ + kFresh) return pages_;
  pages_.Begin(pid);
  pages_of_ = pid;
  pages_since_ = now;
  return pages_;
}

void RuntimeRecords::ReadNames(SteadyClock::duration time) {
  if (javascript_.HasWaiting()) {
    const auto until = SteadyClock::now() + time;
    javascript_.Read(
        [this](uint32_t pid,
               JavaScriptNames::Freshness freshness) -> const ksym::Memory& {
          if (freshness == JavaScriptNames::Freshness::kNow) pages_of_ = 0;
          return PagesOf(pid);
        },
        [until] { return SteadyClock::now() >= until; });
  }
  for (const uint64_t code : javascript_.TakeDropped()) {
    bpf_map_delete_elem(fds_.codes, &code);
  }
}

void RuntimeRecords::AddFrame(RuntimeFrameId id, RuntimeFrameTable& frames) {
  while (id != 0 && !frames.contains(id)) {
    auto frame = javascript_.Get(id);
    if (!frame) frame = names_.Get(id);
    const RuntimeFrameId caller = frame->caller;
    frames.emplace(id, std::move(*frame));
    id = caller;
  }
}

void RuntimeRecords::AddV8Code(const profile_v8_record& record, size_t bytes) {
  const auto layouts = ksym::KnownV8Layouts();
  if (bytes < sizeof(record) || record.layout >= layouts.size()) return;
  JavaScriptCode code = {
      .id = record.code,
      .process = {record.tgid, record.exec_count, record.start_ns},
      .layout = &layouts[record.layout],
      .shared = {record.shared},
      .identity = {.name = record.name,
                   .script = record.script,
                   .literal_id = record.literal_id,
                   .script_id = record.script_id},
      .bytecode = {},
      .pc = {record.pc},
      .is_late = false,
      .witness = {}};
  V8Witness& witness = code.witness.emplace();
  std::ranges::copy(record.witness.named, witness.named.begin());
  std::ranges::copy(record.witness.names, witness.names.begin());
  std::ranges::copy(record.witness.text, witness.text.begin());
  if (record.kind == V8_INTERPRETED) {
    code.bytecode = ksym::V8Word{record.bytecode};
  }
  javascript_.Add(code);
}

void RuntimeRecords::AddCode(const profile_code_record& record, size_t bytes) {
  if (bytes < PROFILE_CODE_RECORD_BYTES(size_t{0})) return;
  const uint32_t lines = record.bytes[RUNTIME_PIECE_LINES];
  if (lines > RUNTIME_LINES_BYTES || record.layout >= layouts_.size() ||
      bytes < PROFILE_CODE_RECORD_BYTES(size_t{lines}) ||
      names_.contains(record.code)) {
    // Code comes twice where two CPUs send it at once.
    return;
  }
  auto code = ksym::ReadCpythonCode(MemoryOf(record), layouts_[record.layout],
                                    {record.address});
  if (!code) return names_.AddUnread();
  names_.Add({record.tgid, record.exec_count, record.start_ns}, record.code,
             std::move(*code));
}

void RuntimeRecords::AddCodeFrames(const ksym::ProcessId& process,
                                   std::span<const runtime_item> items,
                                   RuntimeRuns& runs) {
  std::map<CodeNamer*, std::vector<RuntimeCode>> codes;
  for (const runtime_item& item : items) {
    if ((item.kind & RUNTIME_ITEM_CODE) == 0) continue;
    const auto kind =
        static_cast<RawFrameKind>(item.kind >> RUNTIME_ITEM_KIND_SHIFT);
    const auto namer = code_namers_.find(kind);
    if (namer == code_namers_.end()) continue;
    codes[namer->second].push_back({.native = item.native,
                                    .kind = kind,
                                    .code = item.word,
                                    .index = item.index});
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
    AddCodeFrames(process, items, runs);
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
  const JavaScriptNames::Statistics& javascript = javascript_.statistics();
  const JavaNames::Statistics& java = java_.statistics();
  statistics.codes += javascript.codes + java.places;
  statistics.codes_unread += javascript.codes_unread + java.gone;
  statistics.codes_refused += javascript.codes_refused + java.out_of_time;
  statistics.inlined = {.not_described = java.not_described,
                        .too_much = java.too_much,
                        .corrupt = java.corrupt};
  statistics.code_bytes += javascript.bytes;
  statistics.frames_unnamed += javascript.frames_unnamed;
  statistics.processes =
      published_.size() + of_v8_.size() + hotspot_.published();
  statistics.runs = runs_;
  statistics.sleepers = sleeping_.statistics();
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

void RuntimeRecords::FindV8Frames(const ksym::ProcessId& process,
                                  const NativeStack& native,
                                  const RawStack& stack, RuntimeRuns& all) {
  const auto layout = of_v8_.find(process);
  if (layout == of_v8_.end() || native.rowless.empty()) return;
  for (const JavaScriptFrame& frame :
       FindJavaScriptFrames(native, stack.frames, PagesOf(process.pid),
                            *layout->second, process)) {
    javascript_.Add(frame.code);
    all.code.push_back({.native = frame.native,
                        .frames = {{.kind = kJavaScriptCode,
                                    .value = javascript_.FrameOf(
                                        frame.code.id, frame.index)}}});
  }
}

std::vector<RawFrame> RuntimeRecords::MergeCopy(const profile_copy_record& copy,
                                                const NativeStack& native,
                                                const RawStack& stack) {
  const ksym::ProcessId process = ProcessOf(copy.key);
  RuntimeRuns runs;
  if (auto sent = of_copies_.extract(copy.copy); !sent.empty()) {
    runs = std::move(sent.mapped());
  } else if (const auto mapped = published_.find(process);
             mapped != published_.end()) {
    runs = sleeping_.Read(copy, mapped->second).value_or(RuntimeRuns());
  }
  const size_t frames =
      std::min(native.stack_pointers.size(), stack.frames.size());
  PlaceRuns({.stack_pointers = native.stack_pointers.first(frames),
             .memory = native.memory},
            runs);
  FindV8Frames(process, native, stack, runs);
  if (runs.runs.empty() && runs.code.empty() && !runs.waits) return {};
  return Merge(stack, runs);
}

}  // namespace profd
