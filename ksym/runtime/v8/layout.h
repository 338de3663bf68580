// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ksym {

// Where objects of V8's heap have what, of one version of V8 for x86-64 without
// compressed pointers and without the sandbox, which is how Node builds it.
// Offsets are in bytes from an object's begin, which is a tagged pointer less
// 1; types are those of Map::instance_type.
struct V8Layout {
  std::string_view version;  // "11.3"

  // Types.
  uint16_t first_function = 0;  // of those of JSFunction
  uint16_t last_function = 0;
  uint16_t shared_function_info = 0;
  uint16_t script = 0;
  uint16_t scope_info = 0;
  uint16_t bytecode_array = 0;
  uint16_t code = 0;
  // What code space holds: the same as `code` where instructions are in it.
  uint16_t instruction_stream = 0;
  uint16_t fixed_array = 0;
  uint16_t byte_array = 0;
  uint16_t trusted_byte_array = 0;  // 0: there are none
  uint16_t map = 0;
  // A function of WebAssembly that JavaScript can call has this in its
  // SharedFunctionInfo, in place of byte code.
  uint16_t wasm_exported_function = 0;

  uint8_t function_shared = 0;  // JSFunction
  // SharedFunctionInfo.
  uint8_t shared_data = 0;
  uint8_t shared_name = 0;  // or its ScopeInfo
  uint8_t shared_script = 0;
  uint8_t shared_literal_id = 0;
  // BytecodeArray.
  uint8_t bytecode_positions = 0;
  uint8_t bytecode_first = 0;
  // Code.
  uint8_t code_deoptimization = 0;
  uint8_t code_positions = 0;
  uint8_t code_flags = 0;
  uint8_t code_size = 0;
  uint8_t code_start = 0;     // a pointer; 0: instructions follow the header
  uint8_t code_header = 0;    // of the object in code space
  uint8_t baseline_kind = 0;  // in the lowest four bits of the flags
  // Elements of the array that is a Code's deoptimization data.
  uint8_t deoptimization_literals = 0;
  uint8_t deoptimization_shared = 0;  // or what wraps it
  uint8_t deoptimization_positions = 0;
  // SharedFunctionInfoWrapper; 0: there is none.
  uint8_t wrapper_shared = 0;
  uint16_t wrapper = 0;  // its type

  // ScopeInfo: whether flags are a number of 32 bits, with the function's
  // positions before its variables; else a Smi, with these behind the names.
  bool scope_has_positions_first = false;
  // Source positions: how far code goes on is a number without sign.
  bool positions_are_unsigned = false;
};

// The versions that are known: 10.2, 11.3, 12.4, 13.6 and 14.6, of Node 18, 20,
// 22, 24 and 26.
std::span<const V8Layout> KnownV8Layouts();

}  // namespace ksym
