// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/stack_copies.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <span>
#include <utility>

#include "daemon/capture/fair_share.h"

namespace profd {
namespace {

// Chunks of a stack that are copied where its end is not known: at first, and
// the bounds between which AdaptChunks() goes.
constexpr uint32_t kMinChunks = 8;
constexpr uint32_t kFirstChunks = 64;
constexpr uint32_t kMaxChunks = PROFILE_COPY_BYTES / PROFILE_COPY_CHUNK;

// The sampler numbers copies on each CPU, whose number is in front.
uint64_t CpuOf(uint64_t copy) { return copy >> 48; }

// The first frame whose code was looked up at one of those addresses; else the
// number of frames. A walk may have gone back from frames that were none.
size_t FindFirst(std::span<const ksym::Address> addresses,
                 std::span<const uint64_t> frames) {
  for (size_t i = 0; i < frames.size() && !addresses.empty(); ++i) {
    const ksym::Address at = {frames[i] - (i > 0 ? 1 : 0)};
    if (std::ranges::find(addresses, at) != addresses.end()) return i;
  }
  return frames.size();
}

std::vector<NativeStack::Rowless> RowlessOf(
    std::span<const ksym::Address> addresses,
    std::span<const ksym::Address> in_file, std::span<const uint64_t> frames) {
  std::vector<NativeStack::Rowless> rowless;
  for (size_t i = 0; i < frames.size() && !addresses.empty(); ++i) {
    const ksym::Address at = {frames[i] - (i > 0 ? 1 : 0)};
    if (std::ranges::find(addresses, at) == addresses.end()) continue;
    rowless.push_back(
        {.index = i,
         .is_in_file = std::ranges::find(in_file, at) != in_file.end()});
  }
  return rowless;
}

// What a walk saw of code.
struct CodeOnTheWay {
  // Code of frames whose callers only the frame pointer can tell.
  std::vector<ksym::Address> without_row;
  std::vector<ksym::Address> in_file;  // of these, what files have
  bool is_waiting = false;             // for a table

  ksym::CodeAt Note(ksym::Address address,
                    const std::optional<ksym::CodeAt>& code) {
    if (!code) {
      is_waiting = true;
      return {};
    }
    const ksym::UnwindRow* row = nullptr;
    if (code->kind == ksym::CodeAt::Kind::kTable) {
      row = ksym::FindUnwindRow(*code->table, address.value - code->load_bias -
                                                  code->table->base.value);
    }
    if (row == nullptr || ksym::GetCfaKind(*row) == ksym::CfaKind::kNoInfo) {
      without_row.push_back(address);
      if (row != nullptr) in_file.push_back(address);
    }
    return *code;
  }

  // Frames whose runtime told their callers.
  void LeaveOut(std::span<const RuntimeCode> codes,
                std::span<const uint64_t> frames) {
    for (const RuntimeCode& code : codes) {
      if (code.native >= frames.size()) continue;
      const ksym::Address at = {frames[code.native] -
                                (code.native > 0 ? 1 : 0)};
      std::erase(without_row, at);
      std::erase(in_file, at);
    }
  }
};

// The address is in what the sampler tried to read.
bool WasTried(const profile_copy_record& head, uint64_t address) {
  return (address >= head.address && address < head.end) ||
         (address >= head.home_address && address < head.home_end);
}

// The walk went to what was not copied.
bool IsBeyond(const profile_copy_record& head,
              const ksym::WalkedStack& walked) {
  return walked.end == ksym::StackEnd::kBadRead &&
         !WasTried(head, walked.unread.value);
}

// A copy that is as large as it may be would have it.
bool CanBeCopied(const profile_copy_record& head, uint64_t address) {
  return address - head.address < PROFILE_COPY_BYTES ||
         head.home_end - address < PROFILE_COPY_BYTES;
}

}  // namespace

bool StackCopies::KeyLess::operator()(const profile_key& a,
                                      const profile_key& b) const {
  return std::memcmp(&a, &b, sizeof(a)) < 0;
}

StackCopies::StackCopies(Unwind unwind, uint32_t max_stack_depth)
    : unwind_(unwind),
      max_stack_depth_(max_stack_depth),
      chunks_(kFirstChunks) {}

void StackCopies::AddPiece(const profile_piece_record& record, size_t bytes) {
  if (record.bytes > sizeof(record.stack) ||
      bytes < PROFILE_PIECE_RECORD_BYTES(size_t{record.bytes})) {
    return;
  }
  Pieces& pieces = pieces_[CpuOf(record.copy)];
  // A CPU sends one copy after the other. Where the last one's own record did
  // not fit the ring, its pieces end here.
  if (pieces.copy != record.copy) {
    pieces = {.copy = record.copy, .parts = {}, .stack = {}};
  }
  std::vector<Part>& parts = pieces.parts;
  if (parts.empty() ||
      parts.back().address + parts.back().bytes != record.address) {
    parts.push_back({.address = record.address, .bytes = 0});
  }
  parts.back().bytes += record.bytes;
  const auto* stack = reinterpret_cast<const std::byte*>(record.stack);
  pieces.stack.insert(pieces.stack.end(), stack, stack + record.bytes);
}

void StackCopies::Add(const profile_copy_record& record, size_t bytes) {
  if (bytes < sizeof(record)) return;
  if (record.bytes == 0) {
    // None of its stack could be read; its innermost frame is known.
    copies_.push_back({.head = record, .pieces = {}});
    return;
  }
  const auto pieces = pieces_.find(CpuOf(record.copy));
  if (pieces == pieces_.end() || pieces->second.copy != record.copy ||
      pieces->second.stack.size() != record.bytes) {
    return;
  }
  copies_.push_back({.head = record, .pieces = std::move(pieces->second)});
  pieces_.erase(pieces);
  waiting_bytes_ += record.bytes;
}

std::vector<SampleHint> StackCopies::Hints() {
  std::vector<SampleHint> hints;
  for (; hinted_ < copies_.size(); ++hinted_) {
    const profile_copy_record& head = copies_[hinted_].head;
    hints.push_back({.id = ProcessOf(head.key),
                     .set = head.header.set,
                     .time_ns = head.time_ns,
                     .cgroup = head.cgroup});
  }
  return hints;
}

void StackCopies::Walk(const Sources& sources) {
  for (uint32_t set = 0; set < PROFILE_SETS; ++set) {
    WalkSet(sources, set, Patience::kWait);
  }
}

void StackCopies::WalkSet(const Sources& sources, uint32_t set,
                          Patience patience) {
  WalkIf(sources, patience,
         [&](size_t i) { return copies_[i].head.header.set == set; });
}

template <typename Wanted>
void StackCopies::WalkIf(const Sources& sources, Patience patience,
                         const Wanted& wanted) {
  std::vector<Copy> left;
  size_t hinted = 0;
  for (size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    // A copy that came since the last call of Hints() may be of an unknown
    // process.
    const bool is_hinted = i < hinted_;
    if (is_hinted && wanted(i) && WalkAndCount(copy, sources, patience)) {
      waiting_bytes_ -= copy.pieces.stack.size();
      continue;
    }
    hinted += is_hinted ? 1 : 0;
    left.push_back(std::move(copy));
  }
  copies_ = std::move(left);
  hinted_ = hinted;
}

void StackCopies::Shed(const Sources& sources, uint64_t max_bytes) {
  if (waiting_bytes_ <= max_bytes) return;
  const std::vector<bool> beyond = BeyondTheirShare(max_bytes);
  // Walked with the tables that there are, not dropped: a stack that ends early
  // is better than none.
  WalkIf(sources, Patience::kAtOnce, [&](size_t i) { return beyond[i]; });
}

// By copy: its thread has no room for it.
std::vector<bool> StackCopies::BeyondTheirShare(uint64_t max_bytes) const {
  struct Owner {
    uint64_t bytes = 0;
    std::map<uint32_t, uint64_t> threads;  // bytes of each
    uint64_t share = 0;                    // of each thread
  };
  std::map<ksym::ProcessId, Owner> owners;
  for (const Copy& copy : copies_) {
    Owner& owner = owners[ProcessOf(copy.head.key)];
    owner.bytes += copy.pieces.stack.size();
    owner.threads[copy.head.tid] += copy.pieces.stack.size();
  }
  const auto second = std::views::values;
  std::vector<uint64_t> wants;
  for (const Owner& owner : owners | second) wants.push_back(owner.bytes);
  const uint64_t share = FairShare(std::move(wants), max_bytes);
  for (Owner& owner : owners | second) {
    const auto of_threads = owner.threads | second;
    owner.share = FairShare({of_threads.begin(), of_threads.end()}, share);
    for (uint64_t& bytes : of_threads) bytes = 0;  // that were kept
  }
  std::vector<bool> beyond;
  beyond.reserve(copies_.size());
  for (const Copy& copy : copies_) {
    Owner& owner = owners[ProcessOf(copy.head.key)];
    uint64_t& kept = owner.threads[copy.head.tid];
    const size_t bytes = copy.pieces.stack.size();
    beyond.push_back(bytes > owner.share - std::min(kept, owner.share));
    if (!beyond.back()) kept += bytes;
  }
  return beyond;
}

std::vector<ksym::StackPart> StackCopies::PartsOf(const Pieces& pieces) {
  std::vector<ksym::StackPart> parts;
  parts.reserve(pieces.parts.size());
  std::span<const std::byte> rest = pieces.stack;
  for (const Part& part : pieces.parts) {
    parts.push_back(
        {.address = {part.address}, .bytes = rest.first(part.bytes)});
    rest = rest.subspan(part.bytes);
  }
  // The home stack's come last, wherever it lies.
  std::ranges::sort(parts, {}, [](const ksym::StackPart& part) {
    return part.address.value;
  });
  return parts;
}

bool StackCopies::HasWaiting(uint32_t set) const {
  const auto hinted = std::span(copies_).first(hinted_);
  return std::ranges::any_of(
      hinted, [&](const Copy& copy) { return copy.head.header.set == set; });
}

// False when it has to wait.
bool StackCopies::WalkAndCount(const Copy& copy, const Sources& sources,
                               Patience patience) {
  auto walked = WalkOne(copy, sources, patience);
  if (!walked) return false;
  const RawStack& stack = walked->stack;
  ++walked_;
  ++recent_;
  recent_short_ += walked->needs_more ? 1 : 0;
  // The stack may go on elsewhere, as that of a coroutine does: what tables it
  // will need there no copy can tell.
  if (stack.end == StackEnd::kBeyondCopy || stack.end == StackEnd::kBadRead) {
    sources.tables.WantAll(ProcessOf(copy.head.key));
  }
  const uint32_t set = copy.head.header.set;
  profile_key key = copy.head.key;
  key.user_stack = sources.records.AddWalked(set, stack, walked->merged);
  CountCopy(copy.head, key);
  if (!walked->lacks_table) NoteSlept(copy.head, key);
  return true;
}

std::optional<StackCopies::Walked> StackCopies::WalkOne(
    const Copy& copy, const Sources& sources, Patience patience) const {
  const profile_copy_record& head = copy.head;
  const auto mappings = sources.watch.MappingsAt(head.key.tgid, head.time_ns,
                                                 ksym::Address{head.ip});
  CodeOnTheWay seen;
  const auto find = [&](ksym::Address address) -> ksym::CodeAt {
    const ksym::Mapping* mapping = FindMapping(mappings, address);
    if (mapping == nullptr) return {};
    return seen.Note(address, sources.tables.CodeOf(head.key.tgid, *mapping));
  };
  ksym::StackCopy input;
  input.ip = ksym::Address{head.ip};
  std::ranges::copy(head.registers, input.registers.begin());
  const auto parts = PartsOf(copy.pieces);
  input.parts = parts;
  ksym::WalkedStack walked;
  const auto walk = [&](ksym::CodeSteps* steps) {
    seen = {};
    ksym::WalkStack(input, max_stack_depth_, {.find = find, .steps = steps},
                    walked);
  };
  CopiedCode& copied_code = sources.runtimes.copied_code();
  walk(copied_code.Begin(head));
  if (seen.is_waiting && patience == Patience::kWait) return std::nullopt;
  // Walked without a table that is still being built: the stack ends there.
  const bool needs_more =
      IsBeyond(head, walked) && CanBeCopied(head, walked.unread.value);
  auto code = copied_code.End(head, walked.end);
  // What its steps said may be of other code.
  if (!code) walk(copied_code.EndInCode());

  RawStack stack;
  stack.end = static_cast<StackEnd>(walked.end);
  if (seen.is_waiting) stack.end = StackEnd::kNoTable;
  if (IsBeyond(head, walked)) stack.end = StackEnd::kBeyondCopy;
  for (const ksym::Address frame : walked.frames) {
    stack.frames.push_back(frame.value);
  }
  const std::vector<RuntimeCode> codes =
      std::move(code).value_or(std::vector<RuntimeCode>());
  seen.LeaveOut(codes, stack.frames);
  UseFramePointers(FindFirst(seen.without_row, stack.frames), stack);
  Walked result = {.stack = std::move(stack),
                   .merged = {},
                   .needs_more = needs_more,
                   .lacks_table = seen.is_waiting};
  ksym::PieceMemory memory;
  for (const ksym::StackPart& part : parts)
    memory.Add(part.address, part.bytes);
  result.merged = sources.runtimes.MergeCopy(
      head,
      {.stack_pointers = walked.stack_pointers,
       .memory = memory,
       .rowless =
           RowlessOf(seen.without_row, seen.in_file, result.stack.frames)},
      codes, result.stack);
  return result;
}

// Keeps what frame pointers told only if they are to be used.
void StackCopies::UseFramePointers(size_t first_without_row,
                                   RawStack& stack) const {
  const bool went_on = first_without_row < stack.frames.size() &&
                       first_without_row != stack.frames.size() - 1;
  if (!went_on && stack.end != StackEnd::kZeroFramePointer) return;
  stack.used_frame_pointers = unwind_ == Unwind::kAuto;
  if (unwind_ == Unwind::kTables) {
    stack.frames.resize(first_without_row + 1);
    stack.end = StackEnd::kNoTable;
  }
}

void StackCopies::CountCopy(const profile_copy_record& head, profile_key key) {
  if (head.waker != 0) {
    wakers_[head.header.set].push_back({.id = head.waker, .key = key});
    return;
  }
  auto& counts = counts_[head.header.set];
  bool is_wait = false;
  for (size_t i = 0; i < PROFILE_WAIT_KINDS; ++i) {
    const profile_wait& wait = head.waits[i];
    if (wait.value_ns == 0) continue;
    is_wait = true;
    key.kind = static_cast<uint16_t>(PROFILE_KIND_RUNNABLE + i);
    key.kernel_stack = wait.kernel_stack;
    wait_count& sum = counts[key];
    ++sum.count;
    sum.value_ns += wait.value_ns;
  }
  if (!is_wait) ++counts[key].count;
}

// One that also wanted a CPU goes on soon.
void StackCopies::NoteSlept(const profile_copy_record& head, profile_key key) {
  const auto& [runnable, blocked] = head.waits;
  if (CpuOf(head.copy) != WAIT_COPY_PLACE || runnable.value_ns != 0) return;
  key.kind = PROFILE_KIND_BLOCKED;
  key.kernel_stack = blocked.kernel_stack;
  slept_.push_back({.set = head.header.set, .tid = head.tid, .key = key});
}

std::vector<SampledCount> StackCopies::Take(uint32_t set) {
  std::vector<SampledCount> counts;
  for (const auto& [key, sum] : std::exchange(counts_[set], {})) {
    counts.push_back({.key = key, .count = sum.count, .value = sum.value_ns});
  }
  return counts;
}

uint32_t StackCopies::AdaptChunks(uint64_t refused) {
  const uint64_t walked = std::exchange(recent_, 0);
  const uint64_t needed_more = std::exchange(recent_short_, 0);
  // Copies that are lost weigh more than some that are too short. Those double
  // the size where they are more than one in fifty.
  if (refused > 0) {
    chunks_ = std::max(chunks_ / 2, kMinChunks);
  } else if (needed_more * 50 > walked) {
    chunks_ = std::min(chunks_ * 2, kMaxChunks);
  }
  return chunks_;
}

}  // namespace profd
