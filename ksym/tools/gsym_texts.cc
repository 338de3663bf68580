// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/gsym_texts.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "ksym/base/keyed_hash.h"
#include "ksym/base/printable.h"
#include "ksym/demangle/demangle.h"

namespace ksym {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr size_t kChunkBytes = size_t{64} << 10;

}  // namespace

GsymTexts::GsymTexts(const GsymFile& file, Names names)
    : file_(file), names_(names), slots_(kFirstSlots) {}

// The name's slot, or the free one where it is to be.
GsymTexts::Slot& GsymTexts::SlotOf(uint64_t string_offset) {
  const uint64_t hash = HashWords(string_offset);
  for (size_t i = hash;; ++i) {
    Slot& slot = slots_[i & (slots_.size() - 1)];
    if (slot.string_offset == string_offset || slot.string_offset == kFree) {
      return slot;
    }
  }
}

void GsymTexts::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.string_offset != kFree) SlotOf(slot.string_offset) = slot;
  }
}

std::string_view GsymTexts::Keep(std::string_view text) {
  // A new chunk instead of a larger one, as names that were handed out must
  // stay where they are.
  if (text.size() > free_bytes_) {
    free_bytes_ = std::max(kChunkBytes, text.size());
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(free_bytes_));
    free_ = chunks_.back().get();
  }
  char* const kept = free_;
  std::memcpy(kept, text.data(), text.size());
  free_ += text.size();
  free_bytes_ -= text.size();
  return {kept, text.size()};
}

GsymTexts::Name GsymTexts::MakeName(uint64_t string_offset) {
  std::string_view text = file_.String(string_offset).value_or("");
  if (names_ == Names::kDemangled) {
    const std::string demangled = Demangle(text);
    if (demangled != text) text = Keep(demangled);
  }
  return {.text = text, .is_plain = IsPrintableAscii(text)};
}

const GsymTexts::Name& GsymTexts::NameAt(uint64_t string_offset) {
  Slot* slot = &SlotOf(string_offset);
  if (slot->string_offset != kFree) return slot->name;
  // At half load a search is over after a step or two, and it needs a free slot
  // to end at.
  if (2 * ++count_ > slots_.size()) {
    Grow();
    slot = &SlotOf(string_offset);
  }
  *slot = {.string_offset = string_offset, .name = MakeName(string_offset)};
  return slot->name;
}

const GsymTexts::Path& GsymTexts::PathAt(uint32_t file_index) {
  if (file_index >= file_.file_count()) return no_path_;
  if (file_index >= paths_.size()) paths_.resize(file_.file_count());
  Path& path = paths_[file_index];
  if (path.base.data() != nullptr) return path;
  if (const auto found = file_.FindFile(file_index)) {
    path = {.directory = found->directory,
            .base = found->base,
            .is_plain = IsPrintableAscii(found->directory) &&
                        IsPrintableAscii(found->base)};
  }
  return path;
}

}  // namespace ksym
