// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/interpreter.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/elf/dynamic_symbols.h"
#include "ksym/runtime/cpython/accessors.h"

namespace ksym {
namespace {

constexpr uint16_t kAmd64 = 62;
// Libraries that a file names, and its own names, of some 100 KiB.
constexpr uint64_t kMaxNameBytes = uint64_t{4} << 20;

// What is asked of one file.
class File {
 public:
  File(const ByteSource& source, const ElfImage& image,
       const DynamicSymbols& symbols)
      : source_(source), image_(image), symbols_(symbols) {}

  std::optional<ElfAddress> Find(std::string_view name) const {
    const auto symbol = symbols_.Find(name);
    return symbol ? std::optional(symbol->address) : std::nullopt;
  }

  // The initial value of data of the file.
  std::optional<uint64_t> Long(ElfAddress address) const {
    uint64_t value = 0;
    const auto bytes = std::as_writable_bytes(std::span(&value, 1));
    if (!ReadInitialBytes(source_, image_, address, bytes)) return std::nullopt;
    return value;
  }

  // The function's code, cut off at `most` bytes; empty if there is none.
  std::vector<std::byte> Code(std::string_view name, size_t most) const {
    const auto symbol = symbols_.Find(name);
    if (!symbol) return {};
    std::vector<std::byte> code(std::min<uint64_t>(symbol->size, most));
    if (!ReadInitialBytes(source_, image_, symbol->address, code)) return {};
    return code;
  }

  std::optional<CpythonThreadPlace> ReturnedBy(std::string_view name) const {
    const auto address = Find(name);
    if (!address) return std::nullopt;
    return FindReturnedVariable(Code(name, kMaxReturningBytes), *address);
  }

  std::optional<uint16_t> MemberBy(std::string_view name) const {
    return FindReturnedMember(Code(name, kMaxAccessorBytes));
  }

  // The function returns a word of `variable`.
  std::optional<ElfAddress> WordBy(std::string_view name,
                                   ElfAddress variable) const {
    const auto address = Find(name);
    if (!address) return std::nullopt;
    return FindReturnedWord(Code(name, kMaxAccessorBytes), *address, variable);
  }

  // It needs musl's C library, of which its names have one.
  bool NeedsMusl() const {
    const ElfSection* names = image_.FindSection(".dynstr");
    if (names == nullptr || names->size > kMaxNameBytes) return false;
    std::vector<std::byte> bytes(names->size);
    if (!source_.ReadAt(names->file_offset, bytes)) return false;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                bytes.size());
    return text.find("libc.musl-") != text.npos;
  }

 private:
  const ByteSource& source_;
  const ElfImage& image_;
  const DynamicSymbols& symbols_;
};

// From 3.13 on _PyRuntime begins with _Py_DebugOffsets: a cookie, the version,
// and whether there is no global lock.
Status CheckDebugOffsets(const File& file, ElfAddress runtime,
                         uint64_t version_hex) {
  constexpr uint64_t kCookie = 0x7970677562656478;  // "xdebugpy"
  const auto cookie = file.Long(runtime);
  const auto version = file.Long(runtime + 8);
  const auto free_threaded = file.Long(runtime + 16);
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

// Py_Version; before 3.11, which has none, by functions that are new in each.
Result<CpythonVersion> VersionOf(const File& file, ElfAddress runtime) {
  constexpr uint8_t kFirstWithDebugOffsets = 13;
  if (const auto at = file.Find("Py_Version")) {
    const auto hex = file.Long(*at);
    if (!hex) return Fail(ErrorCode::kCorrupt, "Py_Version has no value");
    const auto version = CpythonVersion::FromHex(*hex & 0xffffffff);
    if (version.major != 3 || version.minor < kFirstWithDebugOffsets) {
      return version;
    }
    auto checked = CheckDebugOffsets(file, runtime, *hex);
    if (!checked) return Fail(std::move(checked.error()));
    return version;
  }
  if (file.Find("Py_NewRef")) return CpythonVersion{3, 10, 0};
  if (file.Find("PyFrame_GetCode")) return CpythonVersion{3, 9, 0};
  if (file.Find("PyCode_NewWithPosOnlyArgs")) return CpythonVersion{3, 8, 0};
  return Fail(ErrorCode::kUnsupported,
              "CPython before 3.8: its frames are not known");
}

Status FindThreads(const File& file, ElfAddress runtime,
                   CpythonInterpreter& found) {
  using Kind = CpythonThreadPlace::Kind;
  const CpythonLayout& layout = found.layout;
  const ElfAddress key = runtime + layout.key;
  auto& [running, own] = found.threads;
  if (layout.holder_before_key != 0) {
    running = {.kind = Kind::kGlobal,
               .address = key - uint64_t{layout.holder_before_key}};
  } else if (const auto place = file.ReturnedBy("_PyThreadState_GetCurrent")) {
    running = *place;
  }
  if (layout.key != 0) {
    own = {.kind = Kind::kKey, .address = key};
    return {};
  }
  const auto place = file.ReturnedBy("PyGILState_GetThisThreadState");
  if (!place) {
    return Fail(ErrorCode::kUnsupported,
                "CPython whose thread states are not found: "
                "PyGILState_GetThisThreadState is not as known");
  }
  own = *place;
  return {};
}

std::optional<CpythonThreadLists> FindLists(const File& file,
                                            ElfAddress runtime) {
  const auto newest = file.WordBy("PyInterpreterState_Head", runtime);
  const auto next = file.MemberBy("PyInterpreterState_Next");
  const auto threads = file.MemberBy("PyInterpreterState_ThreadHead");
  if (!newest || !next || !threads) return std::nullopt;
  return CpythonThreadLists{.newest = *newest,
                            .interpreter_next = *next,
                            .interpreter_threads = *threads};
}

Status FindFrames(const File& file, CpythonInterpreter& found) {
  if (found.layout.runs != CpythonLayout::Runs::kEach) return {};
  found.frame_type = file.Find("PyFrame_Type");
  // (frame, ...) in 3.8, then (thread, frame, ...).
  const size_t argument = found.version.minor == 8 ? 0 : 1;
  const auto word = FindCpythonFrameWord(
      file.Code("_PyEval_EvalFrameDefault", kMaxCpythonLoopBytes), argument);
  if (!found.frame_type || !word) {
    return Fail(ErrorCode::kUnsupported,
                "CPython 3." + std::to_string(found.version.minor) +
                    ": _PyEval_EvalFrameDefault keeps its frame in a way that "
                    "is not known");
  }
  found.frame_word = *word;
  return {};
}

// 0 where the file lies: nothing is within it then.
uint32_t SizeOf(const DynamicSymbol& symbol) {
  constexpr uint64_t kMaxRuntimeBytes = uint64_t{64} << 20;
  return symbol.size <= kMaxRuntimeBytes ? static_cast<uint32_t>(symbol.size)
                                         : 0;
}

}  // namespace

Result<std::optional<CpythonInterpreter>> FindCpython(const ByteSource& source,
                                                      const ElfImage& image) {
  if (image.elf_class() != ElfClass::k64 || image.machine() != kAmd64) {
    return std::nullopt;
  }
  const auto symbols = DynamicSymbols::Open(source, image);
  if (!symbols) return std::nullopt;
  const File file(source, image, *symbols);
  const auto symbol = symbols->Find("_PyRuntime");
  if (!symbol) return std::nullopt;
  const std::optional runtime = symbol->address;
  const auto version = VersionOf(file, *runtime);
  if (!version) return Fail(version.error());
  const auto layout = CpythonLayoutOf(*version);
  if (!layout) return Fail(layout.error());
  const auto code_type = file.Find("PyCode_Type");
  if (!code_type) {
    return Fail(ErrorCode::kCorrupt, "CPython without PyCode_Type");
  }
  if (file.NeedsMusl()) {
    return Fail(ErrorCode::kUnsupported,
                "CPython with musl: where it has thread states is not known");
  }
  CpythonInterpreter found = {.version = *version,
                              .layout = *layout,
                              .threads = {},
                              .lists = FindLists(file, *runtime),
                              .runtime = *runtime,
                              .runtime_bytes = SizeOf(*symbol),
                              .code_type = *code_type,
                              .frame_type = {},
                              .frame_word = {}};
  auto done = FindThreads(file, *runtime, found);
  if (done) done = FindFrames(file, found);
  if (!done) return Fail(std::move(done.error()));
  return found;
}

}  // namespace ksym
