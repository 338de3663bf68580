// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/interpreter.h"

#include <span>

#include "ksym/elf/dynamic_symbols.h"

namespace ksym {
namespace {

constexpr uint16_t kAmd64 = 62;
// The initial value of data of the file.
std::optional<uint64_t> InitialLong(const ByteSource& source,
                                    const ElfImage& image, ElfAddress address) {
  uint64_t value = 0;
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  if (!ReadInitialBytes(source, image, address, bytes)) return std::nullopt;
  return value;
}

// From 3.13 on _PyRuntime begins with _Py_DebugOffsets: a cookie, the version,
// and whether there is no global lock.
Status CheckDebugOffsets(const ByteSource& source, const ElfImage& image,
                         ElfAddress runtime, uint64_t version_hex) {
  constexpr uint64_t kCookie = 0x7970677562656478;  // "xdebugpy"
  const auto cookie = InitialLong(source, image, runtime);
  const auto version = InitialLong(source, image, runtime + 8);
  const auto free_threaded = InitialLong(source, image, runtime + 16);
  if (!cookie || !version || !free_threaded || *cookie != kCookie ||
      *version != version_hex) {
    return Fail(ErrorCode::kCorrupt,
                "_PyRuntime does not begin with _Py_DebugOffsets");
  }
  if (*free_threaded != 0) {
    return Fail(ErrorCode::kUnsupported,
                "CPython without the global lock: its frames are not known");
  }
  return {};
}

}  // namespace

Result<std::optional<CpythonInterpreter>> FindCpython(const ByteSource& source,
                                                      const ElfImage& image) {
  if (image.elf_class() != ElfClass::k64 || image.machine() != kAmd64) {
    return std::nullopt;
  }
  const auto symbols = DynamicSymbols::Open(source, image);
  if (!symbols) return std::nullopt;
  const auto runtime = symbols->Find("_PyRuntime");
  if (!runtime) return std::nullopt;
  const auto code_type = symbols->Find("PyCode_Type");
  const auto version_at = symbols->Find("Py_Version");
  const auto hex = version_at ? InitialLong(source, image, version_at->address)
                              : std::nullopt;
  if (!code_type || !hex) {
    return Fail(ErrorCode::kUnsupported,
                "CPython without Py_Version: only 3.11 and later are known");
  }
  const auto version = CpythonVersion::FromHex(*hex);
  const auto layout = CpythonLayoutOf(version);
  if (!layout) return Fail(layout.error());
  constexpr uint8_t kFirstWithDebugOffsets = 13;
  if (version.minor >= kFirstWithDebugOffsets) {
    auto checked = CheckDebugOffsets(source, image, runtime->address, *hex);
    if (!checked) return Fail(std::move(checked.error()));
  }
  return CpythonInterpreter{.version = version,
                            .layout = *layout,
                            .key = runtime->address + layout->key,
                            .code_type = code_type->address};
}

}  // namespace ksym
