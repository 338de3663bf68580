// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/frame_merge.h"

#include <algorithm>

namespace profd {
namespace {

bool IsPlaced(const RuntimeRun& run) { return run.native.has_value(); }

void Append(const RuntimeRun& run, std::vector<RawFrame>& frames) {
  constexpr RawFrame kTorn = {.kind = kTornFrames};
  if (run.is_torn) {
    if (frames.empty() || frames.back() != kTorn) frames.push_back(kTorn);
    return;
  }
  for (const RuntimeFrameId id : run.frames) {
    frames.push_back({.kind = kPythonCode, .value = id});
  }
}

// The last frame has no end: nothing can be said to lie in it.
void PlaceByAddresses(std::span<const uint64_t> stack_pointers,
                      std::vector<RuntimeRun>& runs) {
  size_t next = 0;
  for (RuntimeRun& run : runs) {
    if (run.anchor == 0) continue;
    while (next + 1 < stack_pointers.size() &&
           stack_pointers[next + 1] <= run.anchor) {
      ++next;
    }
    if (next + 1 < stack_pointers.size() &&
        stack_pointers[next] <= run.anchor) {
      run.native = next;
    }
  }
}

// The word of that native frame; 0: it has none.
uint64_t WordOf(const NativeStack& stack, size_t native, uint32_t below) {
  const uint64_t begin = stack.stack_pointers[native];
  const uint64_t end = stack.stack_pointers[native + 1];
  uint64_t word = 0;
  if (end - begin < below ||
      !stack.memory.Read({end - below},
                         std::as_writable_bytes(std::span(&word, 1)))) {
    return 0;
  }
  return word;
}

// As runtime_place_word() of bpf/runtime/runtime.bpf.h does.
void PlaceByWords(const NativeStack& stack, RuntimeRuns& all) {
  constexpr ptrdiff_t kMaxTried = 4;
  auto next = all.runs.begin();
  for (size_t i = 0; i + 1 < stack.stack_pointers.size(); ++i) {
    const uint64_t word = WordOf(stack, i, all.word_below);
    if (word == 0) continue;
    const auto end =
        next + std::min<ptrdiff_t>(kMaxTried, all.runs.end() - next);
    const auto found = std::ranges::find(next, end, word, &RuntimeRun::anchor);
    if (found == end) continue;
    found->native = i;
    next = found + 1;
  }
}

// Where a run without a place, behind those that have one, says that it is
// torn: in front of this native frame.
size_t PlaceOfTorn(std::span<const RuntimeRun> runs) {
  size_t place = 0;
  for (const RuntimeRun& run : runs) {
    if (run.native) place = *run.native + 1;
  }
  return place;
}

}  // namespace

void PlaceRuns(const NativeStack& stack, RuntimeRuns& runs) {
  for (RuntimeRun& run : runs.runs) run.native.reset();
  if (runs.word_below != 0) {
    PlaceByWords(stack, runs);
  } else {
    PlaceByAddresses(stack.stack_pointers, runs.runs);
  }
}

void MarkGaps(std::vector<RuntimeRun>& runs) {
  const auto first = std::ranges::find_if(runs, IsPlaced);
  std::optional<size_t> place;
  for (auto run = runs.end(); run != first;) {
    --run;
    if (run->native) {
      place = run->native;
    } else if (place) {
      run->is_torn = true;
      run->native = place;
    }
  }
}

size_t CountLeftOut(std::span<const RuntimeRun> runs, NativeEnd end) {
  const auto first = std::ranges::find_if(runs, IsPlaced);
  const auto last = end == NativeEnd::kWhole
                        ? runs.end()
                        : (first == runs.end() ? runs.begin() : first);
  return static_cast<size_t>(std::count_if(
      runs.begin(), last,
      [](const RuntimeRun& run) { return !run.native && !run.is_torn; }));
}

std::vector<RawFrame> MergeFrames(std::span<const uint64_t> native,
                                  std::span<const RuntimeRun> runs,
                                  std::span<const CodeFrames> code,
                                  NativeEnd end) {
  std::vector<RawFrame> frames;
  size_t most = native.size();
  for (const RuntimeRun& some : runs) {
    most += std::max<size_t>(1, some.frames.size());
  }
  for (const CodeFrames& some : code) most += some.frames.size();
  frames.reserve(most);
  auto made = code.begin();
  auto run = runs.begin();
  // Those in front of the first one with a place are of calls that have ended.
  if (std::ranges::any_of(runs, IsPlaced)) {
    run = std::ranges::find_if(runs, IsPlaced);
  }
  const size_t torn = PlaceOfTorn(runs);
  for (size_t i = 0; i < native.size(); ++i) {
    for (; run != runs.end(); ++run) {
      const size_t place = run->native.value_or(run->is_torn ? torn : SIZE_MAX);
      if (place > i) break;
      Append(*run, frames);
    }
    if (made != code.end() && made->native == i) {
      frames.insert(frames.end(), made->frames.begin(), made->frames.end());
      ++made;
    } else {
      frames.push_back({.value = native[i]});
    }
  }
  if (end == NativeEnd::kWhole) return frames;
  for (; run != runs.end(); ++run) Append(*run, frames);
  return frames;
}

}  // namespace profd
