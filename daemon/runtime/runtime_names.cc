// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/runtime_names.h"

#include <utility>

#include "ksym/runtime/cpython/line_table.h"

namespace profd {

size_t RuntimeNames::BytesOf(const Code& code) {
  constexpr size_t kOverhead = 256;  // of the containers, about
  return code.names.name.size() + code.names.file.size() +
         code.names.line_table.size() + kOverhead;
}

void RuntimeNames::Add(const ksym::ProcessId& process, uint64_t code,
                       ksym::CpythonCode names) {
  Code entry = {.names = std::move(names), .frames = {}};
  const size_t bytes = BytesOf(entry);
  if (statistics_.code_bytes + bytes > kMaxBytes) {
    ++statistics_.codes_refused;
    return;
  }
  if (!codes_.try_emplace(code, std::move(entry)).second) return;
  of_process_.emplace(process, code);
  ++statistics_.codes;
  statistics_.code_bytes += bytes;
}

void RuntimeNames::Forget(const ksym::ProcessId& process) {
  const auto [begin, end] = of_process_.equal_range(process);
  for (auto at = begin; at != end; ++at) {
    const auto code = codes_.find(at->second);
    statistics_.code_bytes -= BytesOf(code->second);
    codes_.erase(code);
  }
  of_process_.erase(begin, end);
}

RuntimeFrameId RuntimeNames::FrameOf(uint64_t code, uint32_t index) {
  const auto found = codes_.find(code);
  if (found == codes_.end()) {
    ++statistics_.frames_unnamed;
    return IdOf({});
  }
  const auto [at, is_new] = found->second.frames.try_emplace(index, 0);
  if (!is_new) return at->second;
  const ksym::CpythonCode& names = found->second.names;
  at->second =
      IdOf({.name = names.name,
            .file = names.file,
            .first_line = names.first_line,
            .line = ksym::CpythonLineAt(names.lines(), index).value_or(0)});
  return at->second;
}

RuntimeFrameId RuntimeNames::IdOf(const RuntimeFrame& frame) {
  const auto [at, is_new] = ids_.try_emplace(frame, 0);
  if (is_new) {
    at->second = ++last_id_;
    frames_[at->second] = frame;
  }
  return at->second;
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
  if (frames_.size() <= kMaxFrames) return;
  old_frames_ = std::exchange(frames_, {});
  ids_.clear();
  for (auto& [id, code] : codes_) code.frames.clear();
}

}  // namespace profd
