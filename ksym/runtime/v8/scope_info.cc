// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/scope_info.h"

namespace ksym {
namespace {

// ScopeFlags.
constexpr uint32_t kScopeType = 15;
constexpr uint32_t kHasSavedClassVariable = 1u << 10;
constexpr uint32_t kFunctionVariable = 3u << 12;  // 0: none
constexpr uint32_t kHasInferredName = 1u << 14;
// Types of scopes before V8 13 whose positions are there: eval, function,
// module, script.
constexpr uint32_t kFirstWithPositions = 1;
constexpr uint32_t kLastWithPositions = 4;

constexpr uint64_t kScopeFlags = 8;
constexpr uint64_t kScopeVariables = 24;
constexpr uint64_t kScopePositions = 32;  // from V8 13 on
// So many names of variables are in the object; more are in a table of their
// own, which has one word here.
constexpr uint64_t kMaxScopeNames = 75;
// A function of more variables in its context is not believed.
constexpr uint32_t kMaxScopeVariables = 1u << 16;

class ScopeReader {
 public:
  ScopeReader(const V8Heap& heap, Address at) : heap_(heap), at_(at) {}

  std::optional<V8Word> At(uint64_t offset) const {
    return heap_.ReadWord(at_ + offset);
  }
  // A small integer from 0 on.
  std::optional<uint32_t> Number(uint64_t offset) const {
    const auto word = At(offset);
    if (!word || !word->is_smi() || word->smi() < 0) return std::nullopt;
    return static_cast<uint32_t>(word->smi());
  }
  std::optional<uint32_t> Flags() const {
    if (heap_.layout().scope_has_positions_first) {
      return heap_.Read32(at_ + kScopeFlags);
    }
    return Number(kScopeFlags);
  }

 private:
  const V8Heap& heap_;
  Address at_;
};

}  // namespace

std::optional<Address> FindV8ScopeNames(const V8Heap& heap, V8Word word) {
  if (!heap.IsA(word, heap.layout().scope_info)) return std::nullopt;
  const ScopeReader reader(heap, word.object());
  const auto flags = reader.Flags();
  const auto variables = reader.Number(kScopeVariables);
  if (!flags || !variables || *variables > kMaxScopeVariables) {
    return std::nullopt;
  }
  uint64_t next = kScopeVariables + 8;
  if (heap.layout().scope_has_positions_first) next += 16;
  // Names of the context's variables, and a word for each of what they are.
  const uint64_t names = *variables < kMaxScopeNames ? *variables : 1;
  next += 8 * (names + *variables);
  if ((*flags & kHasSavedClassVariable) != 0) next += 8;
  return word.object() + next;
}

std::optional<V8ScopeInfo> ReadV8ScopeInfo(const V8Heap& heap, V8Word word) {
  const auto names = FindV8ScopeNames(heap, word);
  if (!names) return std::nullopt;
  const bool positions_first = heap.layout().scope_has_positions_first;
  const ScopeReader reader(heap, word.object());
  const auto flags = reader.Flags();
  if (!flags) return std::nullopt;
  V8ScopeInfo info;
  uint64_t next = *names - word.object();
  if (positions_first) info.begin = reader.Number(kScopePositions);
  if ((*flags & kFunctionVariable) != 0) {
    const auto name = reader.At(next);
    if (!name) return std::nullopt;
    info.function_name = *name;
    next += 16;  // and where it is
  }
  if ((*flags & kHasInferredName) != 0) {
    const auto name = reader.At(next);
    if (!name) return std::nullopt;
    info.inferred_name = *name;
    next += 8;
  }
  const uint32_t type = *flags & kScopeType;
  if (!positions_first && type >= kFirstWithPositions &&
      type <= kLastWithPositions) {
    info.begin = reader.Number(next);
  }
  return info;
}

}  // namespace ksym
