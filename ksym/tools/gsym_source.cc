#include "ksym/tools/gsym_source.h"

#include <string>
#include <utility>

#include "ksym/elf/elf_image.h"
#include "ksym/gsym/gsym_image.h"
#include "ksym/gsym/gsym_index.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"
#include "ksym/tools/gsym_texts.h"

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
        texts_(image_.file(), options.demangle == Demangling::kOn
                                  ? GsymTexts::Names::kDemangled
                                  : GsymTexts::Names::kAsStored),
        symbols_(std::move(symbols)) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    const auto found = LookupGsymRefs(image_.file(), {address}, index_, found_);
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
    answer.is_kept = true;
    answer.symbol_start = found_.start.value;
    for (const GsymFrameRef& frame : found_.refs) {
      const GsymTexts::Name& name = texts_.NameAt(frame.function);
      const GsymTexts::Path& path = texts_.PathAt(frame.file);
      answer.frames.push_back({.function = name.text,
                               .directory = path.directory,
                               .file = path.base,
                               .line = frame.line,
                               .is_plain = name.is_plain && path.is_plain});
    }
  }

 private:
  GsymImage image_;
  GsymIndex index_;
  std::string build_id_;
  std::string path_;
  GsymTexts texts_;
  std::unique_ptr<AddressSource> symbols_;  // may be null
  GsymAnswer found_;
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
