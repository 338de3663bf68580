// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/runtime_names.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "ksym/base/keyed_hash.h"
#include "ksym/runtime/cpython/line_table.h"

namespace profd {

size_t RuntimeNames::BytesOf(const Code& code) {
  constexpr size_t kOverhead = 256;  // of the containers, about
  return code.names.name.size() + code.names.file.size() +
         code.names.line_table.size() + kOverhead;
}

void RuntimeNames::Add(const ksym::ProcessId& process, uint64_t code,
                       ksym::CpythonCode names) {
  if (codes_.contains(code)) return;
  Code entry = {.used = interval_,
                .frames = {},
                .process = process,
                .names = std::move(names)};
  const size_t bytes = BytesOf(entry);
  if (!MakeRoom(bytes)) {
    ++statistics_.codes_refused;
    // The sampler may send it again.
    dropped_.push_back(code);
    return;
  }
  codes_.emplace(code, std::move(entry));
  Owned& owned = of_process_[process];
  owned.codes.insert(code);
  owned.bytes += bytes;
  ++statistics_.codes;
  statistics_.code_bytes += bytes;
}

// Frees as much as is missing and a part of what the largest process has, so
// that not each function that comes asks again. False: there is no room for so
// much, or all of it is in use.
bool RuntimeNames::MakeRoom(size_t bytes) {
  if (bytes > kMaxBytes) return false;
  if (statistics_.code_bytes + bytes <= kMaxBytes) return true;
  const auto largest = std::ranges::max_element(
      of_process_, {}, [](const auto& entry) { return entry.second.bytes; });
  // By use, the longest ago first. Code that stacks of this interval need
  // stays.
  std::vector<std::pair<uint64_t, uint64_t>> by_use;
  for (const uint64_t code : largest->second.codes) {
    const uint64_t used = codes_.at(code).used;
    if (used != interval_) by_use.emplace_back(used, code);
  }
  std::ranges::sort(by_use);
  constexpr size_t kShare = 4;
  const size_t enough =
      kMaxBytes - std::min(kMaxBytes / kShare + bytes, kMaxBytes);
  for (const auto& [used, code] : by_use) {
    if (statistics_.code_bytes <= enough) break;
    Drop(code);
    ++statistics_.codes_refused;
    dropped_.push_back(code);
  }
  return statistics_.code_bytes + bytes <= kMaxBytes;
}

void RuntimeNames::Drop(uint64_t code) {
  const auto found = codes_.find(code);
  const size_t bytes = BytesOf(found->second);
  const auto owned = of_process_.find(found->second.process);
  owned->second.codes.erase(code);
  owned->second.bytes -= bytes;
  if (owned->second.codes.empty()) of_process_.erase(owned);
  statistics_.code_bytes -= bytes;
  codes_.erase(found);
}

void RuntimeNames::Forget(const ksym::ProcessId& process) {
  const auto owned = of_process_.extract(process);
  if (owned.empty()) return;
  for (const uint64_t code : owned.mapped().codes) codes_.erase(code);
  statistics_.code_bytes -= owned.mapped().bytes;
}

RuntimeFrameId RuntimeNames::FrameOf(uint64_t code, uint32_t index) {
  const auto found = codes_.find(code);
  if (found == codes_.end()) {
    ++statistics_.frames_unnamed;
    return IdOf({});
  }
  found->second.used = interval_;
  auto& frames = found->second.frames;
  auto at = std::ranges::lower_bound(
      frames, index, {}, &std::pair<uint32_t, RuntimeFrameId>::first);
  if (at != frames.end() && at->first == index) return at->second;
  const ksym::CpythonCode& names = found->second.names;
  const RuntimeFrameId id =
      IdOf({.name = names.name,
            .file = names.file,
            .first_line = names.first_line,
            .line = ksym::CpythonLineAt(names.lines(), index).value_or(0)});
  if (frames.size() >= kMaxIndexes) {
    frames.clear();
    at = frames.end();
  }
  frames.insert(at, {index, id});
  return id;
}

size_t RuntimeNames::FrameHash::operator()(const RuntimeFrame* frame) const {
  return ksym::HashWords(
      ksym::HashText(frame->name), ksym::HashText(frame->file),
      ksym::WordOf(frame->first_line, frame->line), frame->caller,
      (frame->line_is_near ? 2u : 0u) | (frame->is_interpreted ? 1u : 0u));
}

RuntimeFrameId RuntimeNames::IdOf(const RuntimeFrame& frame) {
  const auto known = ids_.find(&frame);
  if (known != ids_.end()) return known->second;
  const RuntimeFrameId id = NewId();
  ids_.emplace(&frames_.emplace(id, frame).first->second, id);
  return id;
}

const RuntimeFrame& RuntimeNames::Get(RuntimeFrameId id) const {
  static const RuntimeFrame kForgotten;
  for (const auto* frames : {&frames_, &old_frames_}) {
    const auto found = frames->find(id);
    if (found != frames->end()) return found->second;
  }
  return kForgotten;
}

void RuntimeNames::ForgetOldFrames() {
  ++interval_;
  if (frames_.size() <= kMaxFrames) return;
  ++forgettings_;
  ids_.clear();
  old_frames_ = std::exchange(frames_, {});
  for (auto& [id, code] : codes_) code.frames = {};
}

}  // namespace profd
