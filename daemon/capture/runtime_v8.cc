// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/runtime_v8.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "bpf/runtime/runtime_abi.h"
#include "daemon/runtime/javascript_frames.h"
#include "daemon/unwind/sampler_keys.h"

namespace profd {
namespace {

static_assert(kJavaScriptCode == V8_FRAME_KIND);
static_assert(ksym::V8Frame::kContext == V8_FRAME_CONTEXT);
static_assert(ksym::V8Frame::kFunction == V8_FRAME_FUNCTION);
static_assert(ksym::V8Frame::kBytecode == V8_FRAME_BYTECODE);
static_assert(ksym::V8Frame::kOffset == V8_FRAME_OFFSET);
static_assert(ksym::V8Offsets::kMapType == V8_MAP_TYPE);
static_assert(ksym::V8Offsets::kScriptId == V8_SCRIPT_ID);

}  // namespace

bool V8Processes::Add(const ksym::ProcessId& id, const ksym::V8Layout& layout) {
  if (map_ < 0 || layouts_.contains(id)) return false;
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
  const unwind_process key = SamplerKeyOf(id);
  // Without room it is tried again when the process maps more.
  if (bpf_map_update_elem(map_, &key, &process, BPF_ANY) != 0) return false;
  layouts_.emplace(id, &layout);
  return true;
}

void V8Processes::Forget(const ksym::ProcessId& id) {
  javascript_.Forget(id);
  if (layouts_.erase(id) == 0) return;
  const unwind_process key = SamplerKeyOf(id);
  bpf_map_delete_elem(map_, &key);
}

void V8Processes::AddCode(const profile_v8_record& record, size_t bytes) {
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

const ksym::Memory& V8Processes::PagesOf(uint32_t pid) {
  // Pages that were read some time ago may hold something else by now.
  constexpr std::chrono::milliseconds kFresh(2);
  const auto now = SteadyClock::now();
  if (pages_of_ == pid && now < pages_since_ + kFresh) return pages_;
  pages_.Begin(pid);
  pages_of_ = pid;
  pages_since_ = now;
  return pages_;
}

void V8Processes::ReadNames(SteadyClock::duration time) {
  is_naming_ = javascript_.HasWaiting();
  if (!is_naming_) return;
  const auto until = SteadyClock::now() + time;
  javascript_.Read(
      [this](uint32_t pid,
             JavaScriptNames::Freshness freshness) -> const ksym::Memory& {
        if (freshness == JavaScriptNames::Freshness::kNow) pages_of_ = 0;
        return PagesOf(pid);
      },
      [until] { return SteadyClock::now() >= until; });
}

void V8Processes::FindFrames(const ksym::ProcessId& process,
                             const NativeStack& native, const RawStack& stack,
                             RuntimeRuns& all) {
  const auto layout = layouts_.find(process);
  if (layout == layouts_.end() || native.rowless.empty()) return;
  for (const JavaScriptFrame& frame :
       FindJavaScriptFrames(native, stack.frames,
                            {.memory = PagesOf(process.pid),
                             .layout = *layout->second,
                             .id = process})) {
    javascript_.Add(frame.code);
    all.code.push_back({.native = frame.native,
                        .frames = {{.kind = kJavaScriptCode,
                                    .value = javascript_.FrameOf(
                                        frame.code.id, frame.index)}}});
  }
}

}  // namespace profd
