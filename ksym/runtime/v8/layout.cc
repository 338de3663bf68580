// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/layout.h"

#include <array>

namespace ksym {
namespace {

// What each version has as the one before is not said again.
constexpr V8Layout kNode18 = {.version = "10.2",
                              .first_function = 2065,
                              .last_function = 2081,
                              .shared_function_info = 257,
                              .script = 170,
                              .scope_info = 256,
                              .bytecode_array = 195,
                              .code = 240,
                              .instruction_stream = 240,
                              .fixed_array = 179,
                              .byte_array = 194,
                              .map = 250,
                              .wasm_exported_function = 223,
                              .function_shared = 24,
                              .shared_data = 8,
                              .shared_name = 16,
                              .shared_script = 32,
                              .shared_literal_id = 52,
                              .bytecode_positions = 32,
                              .bytecode_first = 54,
                              .code_deoptimization = 16,
                              .code_positions = 24,
                              .code_flags = 48,
                              .code_size = 40,
                              .code_header = 128,
                              .baseline_kind = 11,
                              .deoptimization_literals = 2,
                              .deoptimization_shared = 6,
                              .deoptimization_positions = 7};

// Instructions have an object of their own, in code space.
constexpr V8Layout Node20() {
  V8Layout layout = kNode18;
  layout.version = "11.3";
  layout.first_function = 2066;
  layout.last_function = 2082;
  layout.shared_function_info = 262;
  layout.script = 167;
  layout.scope_info = 261;
  layout.bytecode_array = 191;
  layout.code = 245;
  layout.instruction_stream = 252;
  layout.fixed_array = 175;
  layout.byte_array = 190;
  layout.map = 255;
  layout.wasm_exported_function = 226;
  layout.code_size = 56;
  layout.code_start = 40;
  layout.code_header = 16;
  return layout;
}

// Byte code and code are trusted objects.
constexpr V8Layout Node22() {
  V8Layout layout = Node20();
  layout.version = "12.4";
  layout.shared_function_info = 274;
  layout.scope_info = 272;
  layout.bytecode_array = 205;
  layout.code = 206;
  layout.instruction_stream = 210;
  layout.fixed_array = 174;
  layout.byte_array = 186;
  layout.trusted_byte_array = 212;
  layout.map = 264;
  layout.wasm_exported_function = 231;
  layout.function_shared = 32;
  layout.bytecode_positions = 24;
  layout.bytecode_first = 64;
  layout.code_deoptimization = 8;
  layout.code_positions = 16;
  layout.code_size = 52;
  layout.code_header = 32;
  layout.baseline_kind = 10;
  return layout;
}

constexpr V8Layout Node24() {
  V8Layout layout = Node22();
  layout.version = "13.6";
  layout.first_function = 2065;
  layout.last_function = 2081;
  layout.shared_function_info = 282;
  layout.scope_info = 280;
  layout.bytecode_array = 186;
  layout.code = 187;
  layout.instruction_stream = 192;
  layout.fixed_array = 205;
  layout.byte_array = 217;
  layout.trusted_byte_array = 196;
  layout.map = 272;
  layout.wasm_exported_function = 181;
  layout.shared_name = 24;
  layout.shared_script = 40;
  layout.shared_literal_id = 60;
  layout.code_flags = 52;
  layout.code_size = 56;
  layout.deoptimization_literals = 3;
  layout.deoptimization_shared = 7;
  layout.deoptimization_positions = 8;
  layout.wrapper_shared = 8;
  layout.wrapper = 195;
  layout.scope_has_positions_first = true;
  return layout;
}

constexpr V8Layout Node26() {
  V8Layout layout = Node24();
  layout.version = "14.6";
  layout.first_function = 2066;
  layout.last_function = 2082;
  layout.shared_function_info = 288;
  layout.script = 166;
  layout.scope_info = 286;
  layout.bytecode_array = 185;
  layout.code = 186;
  layout.byte_array = 218;
  layout.map = 278;
  layout.wasm_exported_function = 180;
  layout.baseline_kind = 11;
  layout.positions_are_unsigned = true;
  return layout;
}

constexpr std::array kLayouts = {kNode18, Node20(), Node22(), Node24(),
                                 Node26()};

}  // namespace

std::span<const V8Layout> KnownV8Layouts() { return kLayouts; }

}  // namespace ksym
