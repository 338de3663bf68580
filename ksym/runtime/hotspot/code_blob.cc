// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/code_blob.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "ksym/runtime/hotspot/blob_head.h"

namespace ksym {
namespace {

// Hops in the map of segments; each leads over 254 of them, unless blocks were
// put together.
constexpr int kMaxHops = 16;
constexpr uint8_t kFreeSegment = 0xff;
constexpr uint64_t kMaxCodeBytes = uint64_t{1} << 32;

std::optional<Address> FindBlob(const Memory& memory,
                                const HotspotLayout& layout,
                                const HotspotHeap& heap, Address code) {
  const int shift = heap.segment_shift & 31;
  uint64_t segment = (code - heap.begin) >> shift;
  for (int i = 0; i < kMaxHops; ++i) {
    std::array<std::byte, 1> back = {};
    if (!memory.Read(heap.segments + segment, back)) return std::nullopt;
    const auto segments = std::to_integer<uint8_t>(back[0]);
    if (segments == kFreeSegment || segments > segment) return std::nullopt;
    if (segments == 0) {
      return heap.begin + (segment << shift) + layout.block_bytes;
    }
    segment -= segments;
  }
  return std::nullopt;
}

HotspotBlob::Kind KindOf(std::string_view name) {
  using enum HotspotBlob::Kind;
  // Their first eight bytes tell them apart.
  constexpr std::string_view kMethod("nmethod\0", 8);
  if (name == kMethod || name == "native n") return kCompiled;
  if (name == "Interpre") return kInterpreter;
  return name == "vtable c" ? kVtable : kOther;
}

uint64_t DeoptAt(const HotspotLayout& layout, const HotspotBlobHead& head,
                 Address blob, uint16_t offset) {
  if (offset == 0) return 0;
  return layout.deopt_is_offset ? blob.value + head.At<uint32_t>(offset)
                                : head.At<uint64_t>(offset);
}

}  // namespace

const HotspotHeap* FindHotspotHeap(std::span<const HotspotHeap> heaps,
                                   Address code) {
  const auto found = std::ranges::find_if(heaps, [&](const HotspotHeap& heap) {
    return code.value - heap.begin.value < heap.end - heap.begin;
  });
  return found == heaps.end() ? nullptr : &*found;
}

std::optional<HotspotBlob> ReadHotspotBlob(const Memory& memory,
                                           const HotspotLayout& layout,
                                           const HotspotHeap& heap,
                                           Address code) {
  const auto address = FindBlob(memory, layout, heap, code);
  if (!address) return std::nullopt;
  const auto read = HotspotBlobHead::Read(memory, *address);
  if (!read) return std::nullopt;
  const HotspotBlobHead& head = *read;
  std::array<char, 8> name = {};
  if (!memory.Read({head.At<uint64_t>(layout.blob_name)},
                   std::as_writable_bytes(std::span(name)))) {
    return std::nullopt;
  }
  HotspotBlob blob = {.kind = KindOf({name.data(), name.size()}),
                      .address = *address,
                      .code_begin = {},
                      .code_end = {}};
  const auto place = [&](uint16_t offset) -> Address {
    if (layout.code_is_offset) {
      return *address + head.At<uint32_t>(offset);
    }
    return {head.At<uint64_t>(offset)};
  };
  blob.code_begin = place(layout.blob_code_begin);
  blob.code_end = place(layout.blob_code_end);
  const uint64_t bytes = blob.code_end.value - blob.code_begin.value;
  if (bytes >= kMaxCodeBytes || code.value - blob.code_begin.value >= bytes) {
    return std::nullopt;
  }
  // In frames of no certain size it is -1.
  blob.frame_bytes = head.At<uint32_t>(layout.blob_frame_size) * 8;
  blob.frame_complete =
      layout.frame_complete_is_short
          ? static_cast<uint32_t>(head.At<int16_t>(layout.blob_frame_complete))
          : head.At<uint32_t>(layout.blob_frame_complete);
  if (blob.kind == HotspotBlob::Kind::kCompiled) {
    blob.compile_id =
        static_cast<uint16_t>(head.At<uint32_t>(layout.nmethod_compile_id));
    blob.deopt = DeoptAt(layout, head, *address, layout.nmethod_deopt);
    blob.deopt_mh = DeoptAt(layout, head, *address, layout.nmethod_deopt_mh);
    blob.original_pc = head.At<uint32_t>(layout.nmethod_original_pc);
  }
  return blob;
}

}  // namespace ksym
