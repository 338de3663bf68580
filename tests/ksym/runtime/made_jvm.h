// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// Methods and compiled code in made memory, as JDK 17 lays them out.
class MadeJvm {
 public:
  static constexpr uint64_t kBegin = 0x20000;
  static constexpr size_t kBytes = 0x8000;

  MadeJvm() : bytes_(kBytes), next_(kBegin + 0x100) {
    layout_.block_bytes = 16;
    layout_.block_used = 8;
    layout_.blob_name = 96;
    layout_.nmethod_method = 112;
    layout_.nmethod_compile_id = 304;
    layout_.method_const_method = 8;
    layout_.const_method_constants = 8;
    layout_.const_method_size = 24;
    layout_.const_method_flags = 28;
    layout_.const_method_code_size = 32;
    layout_.const_method_name = 34;
    layout_.const_method_bytes = 48;
    layout_.constants_bytes = 72;
    layout_.constants_length = 60;
    layout_.constants_holder = 24;
    layout_.constants_source_file = 54;
    layout_.klass_name = 24;
    layout_.symbol_length = 4;
    layout_.symbol_body = 6;
    layout_.scopes = HotspotLayout::Scopes::kByAddress;
    layout_.nmethod_pcs = 268;
    layout_.nmethod_pcs_end = 272;
    layout_.nmethod_methods = 260;
    layout_.nmethod_scopes = 120;
    memory_.Add({kBegin}, bytes_);
  }
  MadeJvm(const MadeJvm&) = delete;
  MadeJvm& operator=(const MadeJvm&) = delete;

  HotspotLayout& layout() { return layout_; }
  const Memory& memory() const { return memory_; }

  template <typename T>
  void Set(uint64_t address, T value) {
    std::memcpy(&bytes_.at(address - kBegin), &value, sizeof(value));
    (void)bytes_.at(address - kBegin + sizeof(value) - 1);
  }
  void SetBytes(uint64_t address, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) Set(address + i, text[i]);
  }
  uint64_t New(size_t bytes) {
    const uint64_t at = next_;
    next_ += (bytes + 15) / 16 * 16;
    return at;
  }
  uint64_t NewSymbol(std::string_view text) {
    const uint64_t at = New(6 + text.size());
    Set(at + 4, static_cast<uint16_t>(text.size()));
    SetBytes(at + 6, text);
    return at;
  }
  // Has so many bytes of bytecodes, and is in "CLASS.java". `lines`: its table.
  Address NewMethod(std::string_view class_name, std::string_view name,
                    uint16_t bytecodes, std::string_view lines = "") {
    const uint64_t holder = New(64);
    Set(holder + 24, NewSymbol(class_name));
    const uint64_t constants = New(72 + 8 * 3);
    Set(constants + 60, int32_t{3});
    Set(constants + 24, holder);
    Set(constants + 54, uint16_t{2});
    Set(constants + 72 + 8, NewSymbol(name));
    Set(constants + 72 + 16, NewSymbol(std::string(class_name) + ".java"));
    const size_t words = (48 + bytecodes + lines.size() + 7) / 8;
    const uint64_t code = New(8 * words);
    Set(code + 8, constants);
    Set(code + 24, static_cast<int32_t>(words));
    Set(code + 28, uint16_t{1});
    Set(code + 32, bytecodes);
    Set(code + 34, uint16_t{1});
    SetBytes(code + 48 + bytecodes, lines);
    const uint64_t method = New(96);
    Set(method + 8, code);
    return {method};
  }
  struct Place {
    int32_t code = 0;
    int32_t scope = 0;
  };
  // `scopes`: bytes of them, the first of which is none.
  Address NewCompiled(Address method, uint32_t compile_id,
                      std::string_view scopes,
                      const std::vector<Address>& methods,
                      const std::vector<Place>& places) {
    const uint64_t nmethod = New(1024) + 16;
    Set(nmethod - 8, uint8_t{1});
    Set(nmethod + 112, method.value);
    Set(nmethod + 304, compile_id);
    int32_t at = 352;
    Set(nmethod + 260, at);
    for (const Address one : methods) {
      Set(nmethod + at, one.value);
      at += 8;
    }
    Set(nmethod + 120, nmethod + at);
    SetBytes(nmethod + at, scopes);
    at += static_cast<int32_t>((scopes.size() + 7) / 8 * 8);
    Set(nmethod + 268, at);
    for (const Place& place : places) {
      Set(nmethod + at, place.code);
      Set(nmethod + at + 4, place.scope);
      at += 16;
    }
    Set(nmethod + 272, at);
    return {nmethod};
  }

 private:
  HotspotLayout layout_;
  std::vector<std::byte> bytes_;
  PieceMemory memory_;
  uint64_t next_;
};

}  // namespace ksym
