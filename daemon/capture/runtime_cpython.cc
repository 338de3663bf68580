// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/runtime_cpython.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "daemon/capture/sampled_count.h"
#include "daemon/unwind/sampler_keys.h"
#include "ksym/runtime/cpython/code_object.h"
#include "ksym/runtime/cpython/thread_states.h"
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
static_assert(CpythonOffsets::kNextThread == CPYTHON_NEXT_THREAD);
static_assert(CpythonOffsets::kInterpreter == CPYTHON_INTERPRETER);
static_assert(ksym::kMaxCpythonStates == CPYTHON_MAX_STATES);

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

// Linkers put the first byte of a program that stays where it is linked there
// or behind it, and of others at 0.
constexpr uint64_t kFixedProgramsBegin = 0x400000;

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
  if (interpreter.lists) {
    process.newest_interpreter = load_bias + interpreter.lists->newest.value;
    process.interpreter_next = interpreter.lists->interpreter_next;
    process.interpreter_threads = interpreter.lists->interpreter_threads;
  }
  process.word_below = interpreter.frame_word.below_cfa;
  process.word_offset = interpreter.frame_word.offset;
  return process;
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

uint32_t CpythonProcesses::NumberOf(const CpythonLayout& layout) {
  auto at = std::ranges::find(layouts_, layout);
  if (at == layouts_.end()) at = layouts_.insert(at, layout);
  return static_cast<uint32_t>(at - layouts_.begin());
}

uint32_t CpythonProcesses::AddFile(const TableFile& file) {
  const std::vector<ksym::ElfSegment>& code = file.table.code;
  const std::optional<ksym::CpythonInterpreter>& interpreter =
      file.runtimes.cpython;
  const ksym::Mapping& mapping = file.mapping;
  if (maps_.files < 0 || mapping.inode == 0 || code.empty() || !interpreter) {
    return 0;
  }
  const auto offset_of = [](const ksym::ElfSegment& segment) {
    return segment.file_offset.value - segment.address.value;
  };
  const uint64_t offset = offset_of(code.front());
  // It would have to be known in which segment an address is.
  if (std::ranges::count(code, offset, offset_of) !=
      static_cast<ptrdiff_t>(code.size())) {
    return 0;
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
  if (bpf_map_update_elem(maps_.files, &key, &program, BPF_ANY) != 0) return 0;
  const bool moves = 0 - offset < kFixedProgramsBegin;
  return moves ? RUNTIME_KNOWN | RUNTIME_KNOWN_MOVING : RUNTIME_KNOWN;
}

uint32_t CpythonProcesses::Add(const ksym::ProcessId& id, uint64_t load_bias,
                               const ksym::CpythonInterpreter& interpreter) {
  if (maps_.processes < 0) return 0;
  const auto at = known_.find(id);
  // A copy, as somebody may be at work with the one that is there.
  auto known = std::make_shared<std::vector<MappedInterpreter>>();
  if (at != known_.end()) *known = *at->second;
  const auto place_of = [](const MappedInterpreter& mapped) {
    return mapped.load_bias + mapped.found.code_type.value;
  };
  const uint64_t place = load_bias + interpreter.code_type.value;
  if (known->size() >= RUNTIME_INTERPRETERS ||
      std::ranges::find(*known, place, place_of) != known->end()) {
    return 0;
  }
  cpython_process process = Describe(interpreter, load_bias);
  process.layout = NumberOf(interpreter.layout);
  const runtime_interpreter key = {
      .process = SamplerKeyOf(id),
      .number = static_cast<uint32_t>(known->size()),
      .reserved = 0};
  if (bpf_map_update_elem(maps_.processes, &key, &process, BPF_ANY) != 0) {
    // There is no room. It is tried again when the process maps more.
    return 0;
  }
  known->push_back({.found = interpreter, .load_bias = load_bias});
  known_[id] = std::move(known);
  return RUNTIME_KNOWN;
}

void CpythonProcesses::Forget(const ksym::ProcessId& id) {
  const auto known = known_.extract(id);
  if (known.empty()) return;
  for (uint32_t i = 0; i < known.mapped()->size(); ++i) {
    const runtime_interpreter key = {
        .process = SamplerKeyOf(id), .number = i, .reserved = 0};
    bpf_map_delete_elem(maps_.processes, &key);
  }
}

void CpythonProcesses::AddCode(const profile_code_record& record,
                               size_t bytes) {
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

std::optional<RuntimeRuns> CpythonProcesses::ReadSleeper(
    const profile_copy_record& copy) {
  const auto known = known_.find(ProcessOf(copy.key));
  if (known == known_.end()) return std::nullopt;
  return sleeping_.Read(copy, known->second);
}

}  // namespace profd
