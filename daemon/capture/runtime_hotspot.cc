// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/runtime_hotspot.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <span>
#include <utility>

#include "bpf/runtime/hotspot_abi.h"
#include "daemon/unwind/sampler_keys.h"
#include "ksym/runtime/hotspot/method.h"
#include "ksym/runtime/memory.h"

namespace profd {
namespace {

static_assert(kJavaCompiled == HOTSPOT_FRAME_COMPILED);
static_assert(kJavaInterpreted == HOTSPOT_FRAME_INTERPRETED);
static_assert(kJavaStub == HOTSPOT_FRAME_STUB);
static_assert(ksym::HotspotLayout::kBlobBytes == HOTSPOT_BLOB_BYTES);
static_assert(ksym::kMaxHotspotHeaps == HOTSPOT_HEAPS);

// A JVM that has not started by then never does.
constexpr uint32_t kMaxTries = 600;
// Tables that lie are read so often: before the loader is done they do.
constexpr uint32_t kMaxLies = 20;
// JVMs whose tables are read in one pass, in some 10 ms each.
constexpr int kMaxStarts = 2;
// Bytes of what a stub is called.
constexpr size_t kMaxStubName = 64;
// Methods that are read between two drains, in some 200 us each.
constexpr uint32_t kMaxReads = 1000;
// Methods whose names are kept, of all processes; beyond that those of a
// process that has more are read again. Some 100 bytes each.
constexpr size_t kMaxMethods = 262144;

class HotspotMemory final : public ksym::Memory {
 public:
  HotspotMemory(ForeignMemory& memory, uint32_t pid)
      : memory_(memory), pid_(pid) {}
  size_t ReadSome(ksym::Address address,
                  std::span<std::byte> out) const override {
    return memory_.Read(pid_, address.value, out);
  }

 private:
  ForeignMemory& memory_;
  uint32_t pid_;
};

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
  process.nmethod_method = layout.nmethod_method;
  process.nmethod_compile_id = layout.nmethod_compile_id;
  process.method_const_method = layout.method_const_method;
  process.const_method_bytes = layout.const_method_bytes;
  process.const_method_code_size = layout.const_method_code_size;
  process.code_is_offset = layout.code_is_offset ? 1 : 0;
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
                                          .methods = {}});
}

void HotspotProcesses::Forget(const ksym::ProcessId& process) {
  const auto gone = processes_.extract(process);
  if (gone.empty()) return;
  kept_ -= gone.mapped().methods.size();
  if (!gone.mapped().is_published) return;
  const unwind_process key = SamplerKeyOf(process);
  bpf_map_delete_elem(map_, &key);
  --statistics_.processes;
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
  warnings_.push_back("no Java frames of process " + std::to_string(id.pid) +
                      ": " + why);
}

// True when the sampler was told of it.
bool HotspotProcesses::Start(const ksym::ProcessId& id, Process& process) {
  const HotspotMemory memory(memory_, id.pid);
  ++process.tries;
  if (!process.layout) {
    const ksym::CachedMemory cached(memory);
    auto layout =
        ksym::ReadHotspotLayout(cached, process.library, process.load_bias);
    if (!layout) {
      // Before the loader is done its tables are not in place.
      if (layout.error().code() == ksym::ErrorCode::kUnsupported ||
          process.tries > kMaxLies) {
        Refuse(id, process, layout.error().message());
      }
      return false;
    }
    process.layout = *layout;
  }
  const auto heaps =
      ksym::ReadHotspotHeaps(memory, *process.layout, process.load_bias);
  if (!heaps) {
    if (process.tries > kMaxTries) Refuse(id, process, heaps.error().message());
    return false;
  }
  const hotspot_process value = DescribeJvm(*process.layout, *heaps);
  const unwind_process key = SamplerKeyOf(id);
  if (bpf_map_update_elem(map_, &key, &value, BPF_ANY) != 0) {
    Refuse(id, process, "there is no room in the sampler's map");
    return false;
  }
  process.is_published = true;
  ++statistics_.processes;
  return true;
}

std::vector<RawFrame> HotspotProcesses::FramesOf(const ksym::ProcessId& process,
                                                 const RuntimeCode& code) {
  const auto found = processes_.find(process);
  // A frame without a name is one all the same.
  RuntimeFrame frame;
  if (found != processes_.end() && found->second.layout) {
    Process& jvm = found->second;
    const std::pair key = {code.kind, code.code};
    const auto known = jvm.methods.find(key);
    if (known != jvm.methods.end()) {
      frame.name = known->second;
    } else if (auto name = NameOf(process, *jvm.layout, code)) {
      frame.name = *std::move(name);
      if (kept_ >= kMaxMethods) {
        kept_ -= jvm.methods.size();
        jvm.methods.clear();
      }
      if (kept_ < kMaxMethods) {
        jvm.methods.emplace(key, frame.name);
        ++kept_;
      }
    }
  }
  return {{.kind = code.kind, .value = names_.IdOf(frame)}};
}

std::optional<std::string> HotspotProcesses::NameOf(
    const ksym::ProcessId& id, const ksym::HotspotLayout& layout,
    const RuntimeCode& code) {
  if (read_ >= kMaxReads) {
    ++statistics_.methods_late;
    return std::nullopt;
  }
  ++read_;
  const HotspotMemory memory(memory_, id.pid);
  std::optional<std::string> name;
  if (code.kind == kJavaStub) {
    name = ksym::ReadHotspotBlobName(memory, layout, {code.code}, kMaxStubName);
    if (!name) ++statistics_.methods_gone;
    return name;
  }
  constexpr uint64_t kAddress = (uint64_t{1} << HOTSPOT_TAG_SHIFT) - 1;
  std::optional<ksym::Address> method = ksym::Address{code.code & kAddress};
  const auto tag = static_cast<uint16_t>(code.code >> HOTSPOT_TAG_SHIFT);
  if (code.kind == kJavaCompiled) {
    method = ksym::ReadHotspotMethodOf(memory, layout, *method, tag);
  } else if (ksym::ReadHotspotMethodTag(memory, layout, *method) != tag) {
    method.reset();
  }
  if (method) name = ksym::ReadHotspotMethodName(memory, layout, *method);
  if (name) {
    ++statistics_.methods;
  } else {
    ++statistics_.methods_gone;
  }
  return name;
}

// Methods that are interpreted have no id: when a class is unloaded another one
// may have a method in the same places, so that their names are read again.
void HotspotProcesses::EndInterval() {
  read_ = 0;
  for (auto& [id, process] : processes_) {
    kept_ -= std::erase_if(process.methods, [](const auto& method) {
      return method.first.first == kJavaInterpreted;
    });
  }
}

}  // namespace profd
