// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/compiled_code.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "ksym/runtime/hotspot/blob_head.h"

namespace ksym {
namespace {

// A PcDesc's size, and where it has its scope.
constexpr size_t kPcDescBytes = 16;
constexpr size_t kPcDescScope = 4;

Error CorruptCode() {
  return {ErrorCode::kCorrupt, "an nmethod whose scopes cannot be"};
}
Error GoneCode() { return {ErrorCode::kNotFound, "an nmethod that is gone"}; }

// Nothing: it is not that one, or is freed. One whose class is gone has no
// method.
std::optional<HotspotBlobHead> ReadHead(const Memory& memory,
                                        const HotspotLayout& layout,
                                        Address nmethod, uint16_t compile_id) {
  if (layout.block_used != 0) {
    std::array<std::byte, 1> used = {};
    if (!memory.Read(nmethod - layout.block_bytes + layout.block_used, used) ||
        used.front() == std::byte{0}) {
      return std::nullopt;
    }
  }
  auto head = HotspotBlobHead::Read(memory, nmethod);
  if (!head ||
      (head->At<uint32_t>(layout.nmethod_compile_id) & 0xffff) != compile_id ||
      head->At<uint64_t>(layout.nmethod_method) == 0) {
    return std::nullopt;
  }
  return head;
}

// A part of what is said of the code.
struct Part {
  uint64_t begin = 0;
  uint64_t bytes = 0;

  friend bool operator==(const Part&, const Part&) = default;
};
struct Parts {
  Part places;
  Part scopes;
  Part methods;

  friend bool operator==(const Parts&, const Parts&) = default;
};

// The differences of offsets, which may be anything.
Part Between(uint64_t base, int64_t begin, int64_t end) {
  if (begin < 0 || end < begin) return {};
  return {base + static_cast<uint64_t>(begin),
          static_cast<uint64_t>(end - begin)};
}

// The methods that scopes name, in a JVM whose scopes are in memory of their
// own.
Part MethodsOf(const HotspotBlobHead& head, const HotspotLayout& layout,
               uint64_t blob) {
  if (layout.scopes == HotspotLayout::Scopes::kOutOfBlob) {
    return Between(head.At<uint64_t>(layout.blob_mutable),
                   head.At<int32_t>(layout.blob_relocation_size),
                   head.At<int32_t>(layout.blob_mutable_size));
  }
  // Up to the blob's end, where a compiler that is written in Java has some
  // words of its own.
  const int64_t data = head.At<int32_t>(layout.blob_code_end);
  return Between(blob, data + head.At<uint16_t>(layout.nmethod_methods),
                 head.At<int32_t>(layout.blob_size));
}

Parts PartsOf(const HotspotBlobHead& head, const HotspotLayout& layout,
              Address nmethod) {
  const int64_t places = head.At<int32_t>(layout.nmethod_pcs);
  const auto at = nmethod.value;
  if (layout.scopes == HotspotLayout::Scopes::kOutOfBlob ||
      layout.scopes == HotspotLayout::Scopes::kMethodsInBlob) {
    const auto immutable = head.At<uint64_t>(layout.nmethod_immutable);
    const int64_t scopes = head.At<int32_t>(layout.nmethod_scopes);
    return {.places = Between(immutable, places, scopes),
            .scopes = Between(immutable, scopes,
                              head.At<int32_t>(layout.nmethod_immutable_size)),
            .methods = MethodsOf(head, layout, at)};
  }
  const int64_t scopes =
      layout.scopes == HotspotLayout::Scopes::kByAddress
          ? static_cast<int64_t>(head.At<uint64_t>(layout.nmethod_scopes) - at)
          : head.At<int32_t>(layout.nmethod_scopes);
  // They follow each other.
  return {
      .places = Between(at, places, head.At<int32_t>(layout.nmethod_pcs_end)),
      .scopes = Between(at, scopes, places),
      .methods = Between(at, head.At<int32_t>(layout.nmethod_methods), scopes)};
}

std::vector<std::byte> ReadPart(const Memory& memory, const Part& part) {
  std::vector<std::byte> bytes(part.bytes);
  bytes.resize(memory.ReadSome({part.begin}, bytes));
  return bytes;
}

// The elements that lie beside each other there.
template <typename T>
T ElementAt(std::span<const std::byte> bytes, size_t offset) {
  T value = {};
  std::memcpy(&value, &bytes[offset], sizeof(value));
  return value;
}

}  // namespace

Result<HotspotCompiledCode> HotspotCompiledCode::Read(
    const Memory& memory, const HotspotLayout& layout, Address nmethod,
    uint16_t compile_id) {
  if (layout.scopes == HotspotLayout::Scopes::kNone) {
    return Fail(ErrorCode::kUnsupported, "a JVM whose scopes are not known");
  }
  const auto head = ReadHead(memory, layout, nmethod, compile_id);
  if (!head) return Fail(GoneCode());
  const Parts parts = PartsOf(*head, layout, nmethod);
  // The sizes are the process's: nothing is allocated before they are bounded.
  if (std::max({parts.places.bytes, parts.scopes.bytes, parts.methods.bytes}) >
      kMaxHotspotScopeBytes) {
    return Fail(ErrorCode::kLimit, "an nmethod with too much of scopes");
  }
  HotspotCompiledCode code;
  code.method_ = {head->At<uint64_t>(layout.nmethod_method)};
  code.numbers_ = layout.numbers;
  const auto places = ReadPart(memory, parts.places);
  code.scopes_ = ReadPart(memory, parts.scopes);
  const auto methods = ReadPart(memory, parts.methods);
  // Last: what was freed meanwhile may have been anything.
  const auto then = ReadHead(memory, layout, nmethod, compile_id);
  if (!then || PartsOf(*then, layout, nmethod) != parts ||
      then->At<uint64_t>(layout.nmethod_method) != code.method_.value) {
    return Fail(GoneCode());
  }
  for (size_t at = 0; at + kPcDescBytes <= places.size(); at += kPcDescBytes) {
    code.places_.push_back(
        {.code = ElementAt<int32_t>(places, at),
         .scope = ElementAt<int32_t>(places, at + kPcDescScope)});
  }
  if (!std::ranges::is_sorted(code.places_, {}, &Place::code)) {
    return Fail(CorruptCode());
  }
  for (size_t at = 0; at + 8 <= methods.size(); at += 8) {
    code.methods_.push_back(ElementAt<uint64_t>(methods, at));
  }
  return code;
}

size_t HotspotCompiledCode::bytes() const {
  return sizeof(*this) + places_.size() * sizeof(Place) + scopes_.size() +
         methods_.size() * sizeof(uint64_t);
}

Result<HotspotScopes> HotspotCompiledCode::ScopesAt(uint32_t place) const {
  if (place > INT32_MAX) return Fail(CorruptCode());
  const auto wanted = static_cast<int32_t>(place);
  // The first entry is none, and has a place of -1.
  const auto found =
      std::ranges::lower_bound(places_, wanted, {}, &Place::code);
  // The last one, that behind all code, has no scope.
  if (found == places_.end() || found->scope == 0) {
    return Fail(ErrorCode::kNotFound, "nothing is described there");
  }
  HotspotScopes all = {.scopes = {}, .is_exact = found->code == wanted + 1};
  int64_t at = found->scope;
  while (at != 0) {
    if (all.scopes.size() >= kMaxHotspotInlined) {
      return Fail(ErrorCode::kLimit, "too many calls are inlined");
    }
    if (at < 0 || static_cast<size_t>(at) >= scopes_.size()) {
      return Fail(CorruptCode());
    }
    const std::span<const std::byte> rest(scopes_);
    HotspotNumberReader reader(rest.subspan(static_cast<size_t>(at)), numbers_);
    const auto sender = reader.Next();
    const auto method = reader.Next();    // its number, from 1 on
    const auto bytecode = reader.Next();  // one more than it is
    // A scope is written after the one that it is inlined into.
    if (!sender || !method || !bytecode || *sender >= at || *method == 0 ||
        *method > methods_.size()) {
      return Fail(CorruptCode());
    }
    HotspotScope scope = {.method = {methods_[*method - 1]}, .bytecode = {}};
    if (*bytecode != 0) scope.bytecode = *bytecode - 1;
    all.scopes.push_back(scope);
    at = *sender;
  }
  if (all.scopes.back().method != method_) return Fail(CorruptCode());
  return all;
}

std::optional<Address> ReadHotspotMethodOf(const Memory& memory,
                                           const HotspotLayout& layout,
                                           Address nmethod,
                                           uint16_t compile_id) {
  const auto head = ReadHead(memory, layout, nmethod, compile_id);
  if (!head) return std::nullopt;
  return Address{head->At<uint64_t>(layout.nmethod_method)};
}

}  // namespace ksym
