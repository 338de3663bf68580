// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/kernel_frames.h"

#include <algorithm>

#include "daemon/naming/frame_cache.h"
#include "daemon/naming/interrupt_name.h"
#include "daemon/naming/symbol_text.h"
#include "daemon/naming/user_names.h"
#include "daemon/profile/profile_terms.h"
#include "ksym/base/bounded_name.h"
#include "ksym/demangle/demangle.h"

namespace profd {

void KernelFrames::SetSymbols(const ksym::KernelTimeline& symbols) {
  symbols_ = &symbols;
  if (options_.kernel_offsets == ResolveOptions::KernelOffsets::kDrop) return;
  const auto text = symbols.snapshot().FindByName("_stext");
  text_.reset();
  if (text.size() == 1) text_ = text.front();
}

KernelFrames::Named KernelFrames::Add(uint64_t address, ksym::Address lookup,
                                      ProfileBuilder& builder) {
  Frame frame = {.kind = &kKernelFrame};
  if (options_.addresses == ResolveOptions::Addresses::kKeep) {
    frame.address = address;
  }
  frame.object = builder.Intern("[kernel]");
  if (symbols_ == nullptr) {
    frame.name = frame.object;
    frame.reason = no_symbols_reason_;
    return {.id = builder.AddFrame(frame)};
  }
  bool is_entry = false;
  const auto answer = symbols_->Find(lookup, name_buffer_);
  using Kind = ksym::KernelTimeline::Answer::Kind;
  if (answer.kind == Kind::kFound) {
    is_entry =
        answer.symbol.module.empty() && IsInterruptEntry(answer.symbol.name);
    NameFrame(answer.symbol, frame, builder);
    SetOffset(answer.symbol, lookup, frame);
  } else {
    frame.name = builder.Intern("[unknown]");
    frame.reason = answer.kind == Kind::kAmbiguous
                       ? ksym::Unresolved::kAmbiguous
                       : ksym::Unresolved::kNoSymbol;
  }
  return {.id = builder.AddFrame(frame), .is_entry = is_entry};
}

bool KernelFrames::IsFunction(ksym::Address lookup,
                              std::span<const std::string_view> names) {
  if (symbols_ == nullptr) return false;
  const auto answer = symbols_->Find(lookup, name_buffer_);
  return answer.kind == ksym::KernelTimeline::Answer::Kind::kFound &&
         answer.symbol.module.empty() &&
         std::ranges::find(names, answer.symbol.name) != names.end();
}

std::string KernelFrames::InterruptOf(const PackedStack& stack) {
  InterruptName name;
  bool goes_on = symbols_ != nullptr;
  auto place = FrameCache::Place::kLeaf;
  ForEachFrame(stack, [&](const RawFrame& raw) {
    if (!goes_on) return;
    const auto answer =
        symbols_->Find(LookupAddress(raw.value, place), name_buffer_);
    place = FrameCache::Place::kCaller;
    goes_on = name.Add(answer.kind == ksym::KernelTimeline::Answer::Kind::kFound
                           ? answer.symbol.name
                           : std::string_view());
  });
  return name.name();
}

void KernelFrames::SetOffset(const ksym::KernelSymbol& symbol,
                             ksym::Address lookup, Frame& frame) const {
  if (options_.kernel_offsets == ResolveOptions::KernelOffsets::kDrop) return;
  if (!symbol.module.empty()) {
    frame.file_offset = lookup.value;
  } else if (text_) {
    frame.file_offset = lookup - *text_;
  }
}

void KernelFrames::NameFrame(const ksym::KernelSymbol& symbol, Frame& frame,
                             ProfileBuilder& builder) const {
  if (!symbol.module.empty()) {
    const std::string module = InBrackets(symbol.module);
    frame.kind = KernelKindOf(module);
    frame.object = builder.Intern(module);
  }
  frame.symbol_offset = symbol.offset;
  if (const auto program = SplitBpfProgramName(symbol.name)) {
    frame.name = builder.Intern(program->name);
    frame.build_id = builder.Intern(program->tag);
    return;
  }
  // Rust in the kernel; C names come back as they are.
  const std::string name =
      options_.demangle == ksym::SymbolizerOptions::Demangle::kOn
          ? ksym::Demangle(symbol.name)
          : std::string(symbol.name);
  std::string room;
  frame.name = builder.Intern(ksym::BoundName(name, room));
}

}  // namespace profd
