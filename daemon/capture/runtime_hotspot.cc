// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/runtime_hotspot.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <ranges>
#include <span>
#include <utility>

#include "bpf/runtime/hotspot_abi.h"
#include "daemon/unwind/sampler_keys.h"
#include "ksym/runtime/memory.h"

namespace profd {
namespace {

static_assert(ksym::HotspotLayout::kBlobBytes == HOTSPOT_BLOB_BYTES);
static_assert(ksym::kMaxHotspotHeaps == HOTSPOT_HEAPS);

// A JVM counts as new for so long.
constexpr std::chrono::milliseconds kNewFor(500);
// A JVM that has not started by then never does.
constexpr uint32_t kMaxTries = 600;
// Tables that lie are read so often: before the loader is done they do.
constexpr uint32_t kMaxLies = 20;
// JVMs whose tables are read in one pass, in some 3 ms each.
constexpr int kMaxStarts = 2;
// Bytes that are read of one, in pages.
constexpr size_t kMaxTableBytes = size_t{8} << 20;

hotspot_process DescribeJvm(const ksym::HotspotLayout& layout,
                            std::span<const ksym::HotspotHeap> heaps) {
  hotspot_process process = {};
  for (size_t i = 0; i < heaps.size(); ++i) {
    process.heaps[i] = {.begin = heaps[i].begin.value,
                        .bytes = heaps[i].end - heaps[i].begin,
                        .segments = heaps[i].segments.value};
    process.segment_shift = heaps[i].segment_shift;
  }
  process.block_bytes = layout.block_bytes;
  process.blob_name = layout.blob_name;
  process.blob_frame_size = layout.blob_frame_size;
  process.blob_frame_complete = layout.blob_frame_complete;
  process.blob_code_begin = layout.blob_code_begin;
  process.blob_code_end = layout.blob_code_end;
  process.nmethod_compile_id = layout.nmethod_compile_id;
  process.method_const_method = layout.method_const_method;
  process.const_method_bytes = layout.const_method_bytes;
  process.const_method_code_size = layout.const_method_code_size;
  process.nmethod_deopt = layout.nmethod_deopt;
  process.nmethod_deopt_mh = layout.nmethod_deopt_mh;
  process.nmethod_original_pc = layout.nmethod_original_pc;
  process.interpreter_bcp = layout.interpreter_bcp;
  const auto flag = [](bool is_set, int bit) { return is_set ? bit : 0; };
  process.flags = static_cast<uint16_t>(
      flag(layout.code_is_offset, HOTSPOT_CODE_IS_OFFSET) |
      flag(layout.deopt_is_offset, HOTSPOT_DEOPT_IS_OFFSET) |
      flag(layout.frame_complete_is_short, HOTSPOT_COMPLETE_IS_SHORT));
  return process;
}

}  // namespace

void HotspotProcesses::Add(const ksym::ProcessId& process, uint64_t load_bias,
                           const ksym::HotspotLibrary& library) {
  if (map_ < 0 || processes_.contains(process)) return;
  if (processes_.size() >= kHotspotProcesses) {
    if (!std::exchange(is_full_, true)) {
      warnings_.push_back(
          "no Java frames of some processes: there are more "
          "JVMs than " +
          std::to_string(kHotspotProcesses));
    }
    return;
  }
  processes_.try_emplace(process, Process{.load_bias = load_bias,
                                          .library = library,
                                          .layout = {},
                                          .since = SteadyClock::now()});
  // Without room its stacks end in its code until it is known.
  const unwind_process key = SamplerKeyOf(process);
  hotspot_process value = {};
  value.flags = HOTSPOT_IS_STARTING;
  bpf_map_update_elem(map_, &key, &value, BPF_ANY);
}

void HotspotProcesses::Forget(const ksym::ProcessId& process) {
  const auto gone = processes_.extract(process);
  if (gone.empty()) return;
  const unwind_process key = SamplerKeyOf(process);
  bpf_map_delete_elem(map_, &key);
  if (!gone.mapped().is_published) return;
  names_.Forget(process);
  code_.Forget(process);
  --published_;
}

bool HotspotProcesses::HasNew(SteadyClock::time_point now) const {
  return std::ranges::any_of(
      std::views::values(processes_), [&](const Process& process) {
        return !process.is_refused && now < process.since + kNewFor;
      });
}

bool HotspotProcesses::Publish() {
  bool any = false;
  int starts = 0;
  for (auto& [id, process] : processes_) {
    if (process.is_published || process.is_refused) continue;
    if (!process.layout && ++starts > kMaxStarts) continue;
    any |= Start(id, process);
  }
  return any;
}

void HotspotProcesses::Refuse(const ksym::ProcessId& id, Process& process,
                              const std::string& why) {
  process.is_refused = true;
  const unwind_process key = SamplerKeyOf(id);
  bpf_map_delete_elem(map_, &key);
  warnings_.push_back("no Java frames of process " + std::to_string(id.pid) +
                      ": " + why);
}

// All that the thread that reads needs and finds: it may be at it when nobody
// waits any more.
struct HotspotProcesses::Reading {
  uint32_t pid = 0;
  uint64_t load_bias = 0;
  ksym::HotspotLibrary library;
  std::optional<ksym::HotspotLayout> layout;  // not read again

  std::optional<ksym::Error> layout_error;
  ksym::Result<std::vector<ksym::HotspotHeap>> heaps;

  void Run() {
    const ThreadMemory memory(pid, kMaxTableBytes);
    const ksym::CachedMemory cached(memory);
    if (!layout) {
      auto found = ksym::ReadHotspotLayout(cached, library, load_bias);
      if (!found) {
        layout_error = std::move(found.error());
        return;
      }
      layout = *found;
    }
    heaps = ksym::ReadHotspotHeaps(cached, *layout, load_bias);
  }
};

// True when the sampler was told of it.
bool HotspotProcesses::Start(const ksym::ProcessId& id, Process& process) {
  ++process.tries;
  auto reading = std::make_shared<Reading>();
  reading->pid = id.pid;
  reading->load_bias = process.load_bias;
  reading->library = process.library;
  reading->layout = process.layout;
  if (!memory_.Run([reading] { reading->Run(); })) {
    Refuse(id, process, "its memory does not answer");
    return false;
  }
  if (const auto& error = reading->layout_error) {
    // Before the loader is done its tables are not in place.
    if (error->code() == ksym::ErrorCode::kUnsupported ||
        process.tries > kMaxLies) {
      Refuse(id, process, error->message());
    }
    return false;
  }
  const std::optional<ksym::HotspotLayout>& layout = reading->layout;
  // One that could not be read has said why.
  if (!layout) return false;
  process.layout = layout;
  const auto& heaps = reading->heaps;
  if (!heaps) {
    if (process.tries > kMaxTries) Refuse(id, process, heaps.error().message());
    return false;
  }
  const hotspot_process value = DescribeJvm(*layout, *heaps);
  const unwind_process key = SamplerKeyOf(id);
  if (bpf_map_update_elem(map_, &key, &value, BPF_ANY) != 0) {
    Refuse(id, process, "there is no room in the sampler's map");
    return false;
  }
  process.is_published = true;
  ++published_;
  names_.Add(id, *layout);
  code_.Add(id, *layout, *heaps);
  if (layout->scopes == ksym::HotspotLayout::Scopes::kNone) {
    warnings_.push_back(
        "no inlined methods and lines of compiled Java code "
        "of process " +
        std::to_string(id.pid) +
        ": its JVM does not say where it describes them");
  }
  return true;
}

}  // namespace profd
