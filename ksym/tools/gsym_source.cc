#include "ksym/tools/gsym_source.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "ksym/demangle/demangle.h"
#include "ksym/elf/elf_image.h"
#include "ksym/gsym/gsym_image.h"
#include "ksym/gsym/gsym_index.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"

namespace ksym {
namespace {

using Demangling = SymbolizerOptions::Demangle;

class GsymSource : public AddressSource {
 public:
  GsymSource(GsymImage image, const SymbolizeOptions& options,
             std::unique_ptr<AddressSource> symbols)
      : image_(std::move(image)),
        index_(image_.file()),
        build_id_(ToHex(image_.file().uuid())),
        path_(options.file),
        demangle_(options.demangle),
        symbols_(std::move(symbols)) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    const auto found = LookupGsym(image_.file(), {address}, index_, found_);
    if (symbols_ && found && !*found) {
      symbols_->Resolve(address, answer);
      return;
    }
    ClearAnswer(answer);
    answer.module = path_;
    answer.build_id = build_id_;
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

  GsymImage image_;
  GsymIndex index_;
  std::string build_id_;
  std::string path_;
  Demangling demangle_;
  std::unique_ptr<AddressSource> symbols_;  // may be null
  GsymAnswer found_;
  std::unordered_map<const char*, std::string> names_;
};

Result<std::unique_ptr<AddressSource>> SourceOf(
    Result<GsymImage> image, const SymbolizeOptions& options,
    std::unique_ptr<AddressSource> symbols) {
  if (!image) return Fail(std::move(image.error()).WithContext(options.file));
  return std::make_unique<GsymSource>(std::move(*image), options,
                                      std::move(symbols));
}

}  // namespace

Result<std::unique_ptr<AddressSource>> OpenGsymFile(
    const SymbolizeOptions& options) {
  auto mapped = MappedFile::Open(options.file);
  if (!mapped) return Fail(std::move(mapped.error()));
  return SourceOf(GsymImage::OfFile(std::move(*mapped)), options, nullptr);
}

Result<std::unique_ptr<AddressSource>> OpenConvertedFile(
    const SymbolizeOptions& options, const ByteSource& source,
    const DebugFileFinder& finder, std::unique_ptr<AddressSource> symbols) {
  auto made = ConvertElfToGsym(source, finder, {});
  if (!made && made.error().code() == ErrorCode::kNotFound) return symbols;
  if (!made) return Fail(std::move(made.error()).WithContext(options.file));
  return SourceOf(GsymImage::OfMemory(std::move(made->bytes)), options,
                  std::move(symbols));
}

}  // namespace ksym
