// SPDX-License-Identifier: Apache-2.0
// What V8 tells debuggers, in as far as it is asked for, as of version 11.3;
// SHARED and SCRIPT depart from that.

#ifndef SHARED
#define SHARED 262
#endif
#ifndef SCRIPT
#define SCRIPT 167
#endif

#define TELL(name, value) \
  __attribute__((visibility("default"))) int v8dbg_##name = value

TELL(off_fp_function, -16);
TELL(off_fp_bytecode_array, -32);
TELL(off_fp_bytecode_offset, -40);
TELL(SmiShiftSize, 31);
TELL(type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE, SHARED);
TELL(type_Script__SCRIPT_TYPE, SCRIPT);
TELL(type_ScopeInfo__SCOPE_INFO_TYPE, 261);
TELL(type_BytecodeArray__BYTECODE_ARRAY_TYPE, 191);
TELL(type_Code__CODE_TYPE, 245);
TELL(type_FixedArray__FIXED_ARRAY_TYPE, 175);
TELL(type_ByteArray__BYTE_ARRAY_TYPE, 190);
TELL(type_Map__MAP_TYPE, 255);
TELL(type_WasmExportedFunctionData__WASM_EXPORTED_FUNCTION_DATA_TYPE, 226);
TELL(type_JSFunction__JS_FUNCTION_TYPE, 2066);
TELL(class_Map__instance_type__uint16_t, 12);
TELL(class_Script__source__Object, 8);
TELL(class_Script__name__Object, 16);
TELL(class_Script__line_ends__Object, 56);
