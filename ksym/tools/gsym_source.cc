#include "ksym/tools/gsym_source.h"

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/demangle/demangle.h"
#include "ksym/gsym/gsym_file.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"

namespace ksym {
namespace {

using Demangling = SymbolizerOptions::Demangle;

// What a GSYM file is a view of: a mapped file, or memory.
struct GsymBytes {
  std::optional<MappedFile> mapped;
  std::vector<std::byte> memory;

  std::span<const std::byte> bytes() const {
    return mapped ? mapped->bytes() : memory;
  }
};

class GsymSource : public AddressSource {
 public:
  GsymSource(GsymBytes bytes, GsymFile file, const SymbolizeOptions& options,
             std::unique_ptr<AddressSource> symbols)
      : bytes_(std::move(bytes)),
        file_(std::move(file)),
        path_(options.file),
        demangle_(options.demangle),
        symbols_(std::move(symbols)) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    const auto found = LookupGsym(file_, {address}, found_);
    if (symbols_ && found && !*found) {
      symbols_->Resolve(address, answer);
      return;
    }
    answer.frames.clear();
    answer.symbol_start.reset();
    answer.module = path_;
    answer.reason = {};
    if (!found || !*found) {
      answer.reason = UnresolvedName(found ? Unresolved::kNoSymbol
                                           : Unresolved::kMalformed);
      return;
    }
    answer.symbol_start = found_.start.value;
    for (const GsymFrame& frame : found_.frames) {
      answer.frames.push_back({.function = Shown(frame.function),
                               .directory = frame.directory,
                               .file = frame.file,
                               .line = frame.line});
    }
  }

 private:
  // Each name is demangled once. Names are views of the file: equal ones have
  // one address.
  std::string_view Shown(std::string_view name) {
    if (demangle_ == Demangling::kOff) return name;
    const auto [at, is_new] = names_.try_emplace(name.data());
    if (is_new) at->second = Demangle(name);
    return at->second;
  }

  GsymBytes bytes_;
  GsymFile file_;  // views of bytes_
  std::string path_;
  Demangling demangle_;
  std::unique_ptr<AddressSource> symbols_;  // may be null
  GsymAnswer found_;
  std::unordered_map<const char*, std::string> names_;
};

Result<std::unique_ptr<AddressSource>> OpenBytes(
    GsymBytes bytes, const SymbolizeOptions& options,
    std::unique_ptr<AddressSource> symbols) {
  auto file = GsymFile::Parse(bytes.bytes());
  if (!file) return Fail(std::move(file.error()).WithContext(options.file));
  return std::make_unique<GsymSource>(std::move(bytes), std::move(*file),
                                      options, std::move(symbols));
}

}  // namespace

Result<std::unique_ptr<AddressSource>> OpenGsymFile(
    const SymbolizeOptions& options) {
  GsymBytes bytes;
  auto mapped = MappedFile::Open(options.file);
  if (!mapped) return Fail(std::move(mapped.error()));
  bytes.mapped = std::move(*mapped);
  return OpenBytes(std::move(bytes), options, nullptr);
}

Result<std::unique_ptr<AddressSource>> OpenConvertedFile(
    const SymbolizeOptions& options, const ByteSource& source,
    const DebugFileFinder& finder, std::unique_ptr<AddressSource> symbols) {
  auto made = ConvertElfToGsym(source, finder, {});
  if (!made && made.error().code() == ErrorCode::kNotFound) return symbols;
  if (!made) return Fail(std::move(made.error()).WithContext(options.file));
  GsymBytes bytes;
  bytes.memory = std::move(made->bytes);
  return OpenBytes(std::move(bytes), options, std::move(symbols));
}

}  // namespace ksym
