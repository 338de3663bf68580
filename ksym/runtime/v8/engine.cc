// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/engine.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ksym/elf/dynamic_symbols.h"

namespace ksym {
namespace {

constexpr uint16_t kV8Machine = 62;

// Numbers that the file tells debuggers.
class DebugConstants {
 public:
  DebugConstants(const ByteSource& source, const ElfImage& image,
                 const DynamicSymbols& symbols)
      : source_(source), image_(image), symbols_(symbols) {}

  // Nothing: the file does not tell.
  std::optional<int32_t> Find(std::string_view name) const {
    const auto symbol = symbols_.Find("v8dbg_" + std::string(name));
    int32_t value = 0;
    const auto bytes = std::as_writable_bytes(std::span(&value, 1));
    if (!symbol || !ReadInitialBytes(source_, image_, symbol->address, bytes)) {
      return std::nullopt;
    }
    return value;
  }

 private:
  const ByteSource& source_;
  const ElfImage& image_;
  const DynamicSymbols& symbols_;
};

struct ExpectedConstant {
  std::string_view name;
  int32_t value = 0;
};

// What a file of that version says: frames, small integers, objects' types and
// some of their members.
auto ExpectedConstantsOf(const V8Layout& layout) {
  return std::array{
      ExpectedConstant{"off_fp_function", -16},
      ExpectedConstant{"off_fp_bytecode_array", -32},
      ExpectedConstant{"off_fp_bytecode_offset", -40},
      ExpectedConstant{"SmiShiftSize", 31},  // pointers are not compressed
      ExpectedConstant{"type_Script__SCRIPT_TYPE", layout.script},
      ExpectedConstant{"type_ScopeInfo__SCOPE_INFO_TYPE", layout.scope_info},
      ExpectedConstant{"type_BytecodeArray__BYTECODE_ARRAY_TYPE",
                       layout.bytecode_array},
      ExpectedConstant{"type_Code__CODE_TYPE", layout.code},
      ExpectedConstant{"type_FixedArray__FIXED_ARRAY_TYPE", layout.fixed_array},
      ExpectedConstant{"type_ByteArray__BYTE_ARRAY_TYPE", layout.byte_array},
      ExpectedConstant{"type_Map__MAP_TYPE", layout.map},
      ExpectedConstant{
          "type_WasmExportedFunctionData__WASM_EXPORTED_FUNCTION_DATA_TYPE",
          layout.wasm_exported_function},
      ExpectedConstant{"type_JSFunction__JS_FUNCTION_TYPE",
                       layout.first_function},
      ExpectedConstant{"class_Map__instance_type__uint16_t", 12},
      ExpectedConstant{"class_Script__source__Object", 8},
      ExpectedConstant{"class_Script__name__Object", 16},
      ExpectedConstant{"class_Script__line_ends__Object", 56},
  };
}

}  // namespace

Result<const V8Layout*> FindV8(const ByteSource& source,
                               const ElfImage& image) {
  if (image.elf_class() != ElfClass::k64 || image.machine() != kV8Machine) {
    return nullptr;
  }
  const auto symbols = DynamicSymbols::Open(source, image);
  if (!symbols) return nullptr;
  const DebugConstants constants(source, image, *symbols);
  const auto type =
      constants.Find("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE");
  if (!type) return nullptr;
  // Each version that is known has another number here.
  const auto known = KnownV8Layouts();
  const auto layout =
      std::ranges::find(known, *type, &V8Layout::shared_function_info);
  if (layout == known.end()) {
    return Fail(ErrorCode::kUnsupported,
                "V8 of a version that is not known: SHARED_FUNCTION_INFO_TYPE "
                "is " +
                    std::to_string(*type));
  }
  for (const ExpectedConstant& expected : ExpectedConstantsOf(*layout)) {
    const auto value = constants.Find(expected.name);
    if (value == expected.value) continue;
    return Fail(ErrorCode::kUnsupported,
                "V8 that is not as version " + std::string(layout->version) +
                    ": v8dbg_" + std::string(expected.name) + " is " +
                    (value ? std::to_string(*value) : "not there"));
  }
  return &*layout;
}

}  // namespace ksym
