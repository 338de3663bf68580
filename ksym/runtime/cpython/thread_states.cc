// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/thread_states.h"

#include <array>
#include <optional>
#include <span>

#include "ksym/unwind/arch.h"

namespace ksym {
namespace {

// What glibc's struct pthread points to: the values of keys, a sequence number
// before each; and the vector of modules' variables.
constexpr uint32_t kKeysInABlock = 32;
constexpr uint32_t kMaxKeys = 1024;
constexpr uint64_t kKeyBytes = 16;
constexpr uint64_t kDtvEntryBytes = 16;
constexpr uint64_t kMaxModules = 65536;
constexpr uint64_t kNotThere = ~uint64_t{0};

// Where the value of the key is that is at that address; 0: nowhere.
uint64_t KeyValue(const Memory& memory, uint64_t thread, uint64_t address) {
  uint32_t key = 0;
  if (!memory.ReadValue({address}, key) || key >= kMaxKeys) return 0;
  uint64_t block = thread + kGlibcKeys;
  const uint64_t index = key / kKeysInABlock;
  if (index != 0 &&
      (!memory.ReadValue({thread + kGlibcKeyBlocks + 8 * index}, block) ||
       block == 0)) {
    return 0;
  }
  return block + kKeyBytes * (key % kKeysInABlock) + 8;
}

// The begin of the module's variables plus an offset, which are at `slot`.
uint64_t InModule(const Memory& memory, uint64_t thread, uint64_t slot) {
  std::array<uint64_t, 2> module = {};
  uint64_t vector = 0;
  uint64_t block = 0;
  if (!memory.ReadValue({slot}, module) || module[0] >= kMaxModules ||
      !memory.ReadValue({thread + kGlibcDtv}, vector) ||
      !memory.ReadValue({vector + kDtvEntryBytes * module[0]}, block) ||
      block == kNotThere || block == 0) {
    return 0;
  }
  return block + module[1];
}

class Finder {
 public:
  Finder(const Memory& memory, const CpythonInterpreter& interpreter,
         const CpythonThread& thread)
      : memory_(memory),
        interpreter_(interpreter),
        layout_(interpreter.layout),
        lists_(interpreter.lists.value_or(CpythonThreadLists{})),
        thread_(thread) {}

  CpythonThreadStates Find() const {
    const uint64_t running = StateBy(interpreter_.threads[0]);
    const auto newest = NewestOfSeveral();
    if (running != 0 && !newest) return {.inner = running};
    const uint64_t bound = StateBy(interpreter_.threads[1]);
    if (bound == 0 || !newest) {
      return {.inner = running != 0 ? running : bound};
    }
    if (running == 0 && layout_.runs != CpythonLayout::Runs::kToShim) {
      return Waiting(*newest, bound);
    }
    if (running != 0 && running != bound) {
      return {.inner = running, .outer = bound};
    }
    return {.inner = bound, .outer = Search(*newest, bound).value_or(0)};
  }

 private:
  uint64_t Moved(ElfAddress address) const {
    return thread_.load_bias + address.value;
  }

  uint64_t VariableBy(const CpythonThreadPlace& place) const {
    const uint64_t thread = thread_.pointer.value;
    const uint64_t address = Moved(place.address);
    const auto distance = static_cast<uint64_t>(int64_t{place.distance});
    using enum CpythonThreadPlace::Kind;
    switch (place.kind) {
      case kNone:
        return 0;
      case kKey:
        return KeyValue(memory_, thread, address);
      case kGlobal:
        return address;
      case kNearThread:
        return thread + distance;
      case kInModule: {
        const uint64_t block = InModule(memory_, thread, address);
        return block == 0 ? 0 : block + distance;
      }
      case kByOffset: {
        uint64_t offset = 0;
        if (!memory_.ReadValue({address}, offset)) return 0;
        return thread + offset + distance;
      }
    }
    return 0;
  }

  bool IsOfThread(uint64_t state) const {
    uint64_t id = 0;
    return memory_.ReadValue({state + layout_.thread_id}, id) &&
           id == thread_.pointer.value;
  }

  // The address of the thread's state; 0: there is none.
  uint64_t StateBy(const CpythonThreadPlace& place) const {
    const uint64_t variable = VariableBy(place);
    uint64_t state = 0;
    if (variable == 0 || !memory_.ReadValue({variable}, state) || state == 0 ||
        state % 8 != 0) {
      return 0;
    }
    // This rejects wrong offsets and another thread's state.
    return IsOfThread(state) ? state : 0;
  }

  // Nothing: the process has one interpreter.
  std::optional<uint64_t> NewestOfSeveral() const {
    uint64_t newest = 0;
    uint64_t next = 0;
    if (!interpreter_.lists ||
        !memory_.ReadValue({Moved(lists_.newest)}, newest) || newest == 0 ||
        newest % 8 != 0 ||
        !memory_.ReadValue({newest + lists_.interpreter_next}, next) ||
        next == 0) {
      return std::nullopt;
    }
    return newest;
  }

  bool HasFrames(uint64_t state) const {
    uint64_t frame = 0;
    if (!memory_.ReadValue({state + layout_.thread_frame}, frame)) return false;
    if (layout_.has_cframe && frame != 0 &&
        !memory_.ReadValue({frame + layout_.cframe_frame}, frame)) {
      return false;
    }
    return frame != 0;
  }

  // The states of a thread without the lock, up to 3.11. Frames that are
  // objects do not tell which of two states is the inner one: the bound one is
  // left out there.
  CpythonThreadStates Waiting(uint64_t newest, uint64_t bound) const {
    const auto other = Search(newest, bound);
    if (!other) return {.is_unknown = true};
    if (*other == 0) return {.inner = bound};
    if (layout_.runs == CpythonLayout::Runs::kEach) return {.inner = *other};
    if (IsInside(bound, *other)) return {.inner = bound, .outer = *other};
    return {.inner = *other, .outer = bound};
  }

  // Whether the first of two states runs inside of the second one, by their
  // structs on the C stack.
  bool IsInside(uint64_t one, uint64_t other) const {
    uint64_t frame = 0;
    uint64_t outer_frame = 0;
    return HasFrames(one) &&
           memory_.ReadValue({one + layout_.thread_frame}, frame) &&
           memory_.ReadValue({other + layout_.thread_frame}, outer_frame) &&
           frame < outer_frame;
  }

  struct Found {
    uint64_t state = 0;
    size_t steps_left = kMaxCpythonStates;
  };

  // The state of another interpreter than the bound state's that has frames; 0:
  // there is none. Nothing: it is not known.
  std::optional<uint64_t> Search(uint64_t newest, uint64_t bound) const {
    uint64_t own = 0;
    if (!memory_.ReadValue({bound + CpythonOffsets::kInterpreter}, own)) {
      return std::nullopt;
    }
    Found found;
    uint64_t interpreter = newest;
    while (interpreter != 0) {
      if (interpreter % 8 != 0 || found.steps_left-- == 0 ||
          (interpreter != own && !SearchIn(interpreter, found)) ||
          !memory_.ReadValue({interpreter + lists_.interpreter_next},
                             interpreter)) {
        return std::nullopt;
      }
    }
    return found.state;
  }

  // False: the list is not whole, or has a second one that could be meant.
  bool SearchIn(uint64_t interpreter, Found& found) const {
    uint64_t state = 0;
    if (!memory_.ReadValue({interpreter + lists_.interpreter_threads}, state)) {
      return false;
    }
    while (state != 0) {
      // The next one, and the interpreter.
      std::array<uint64_t, 2> links = {};
      if (state % 8 != 0 || found.steps_left-- == 0 ||
          !memory_.ReadValue({state + CpythonOffsets::kNextThread}, links) ||
          links[1] != interpreter) {
        return false;
      }
      if (IsOfThread(state) && HasFrames(state)) {
        if (found.state != 0) return false;
        found.state = state;
      }
      state = links[0];
    }
    return true;
  }

  const Memory& memory_;
  const CpythonInterpreter& interpreter_;
  const CpythonLayout& layout_;
  const CpythonThreadLists lists_;
  const CpythonThread thread_;
};

}  // namespace

CpythonThreadStates FindThreadStates(const Memory& memory,
                                     const CpythonInterpreter& interpreter,
                                     const CpythonThread& thread) {
  return Finder(memory, interpreter, thread).Find();
}

}  // namespace ksym
