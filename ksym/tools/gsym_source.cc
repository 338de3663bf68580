// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/gsym_source.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
             AddressSource* symbols)
      : image_(std::move(image)),
        index_(image_.file()),
        build_id_(ToHex(image_.file().uuid())),
        path_(options.file),
        texts_(image_.file(), options.demangle == Demangling::kOn
                                  ? GsymTexts::Names::kDemangled
                                  : GsymTexts::Names::kAsStored),
        symbols_(symbols) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    const auto found = LookupGsymRefs(image_.file(), {address}, index_, found_);
    if (symbols_ != nullptr && found && !*found) {
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
  AddressSource* symbols_;  // may be null
  GsymAnswer found_;
};

Result<std::unique_ptr<GsymSource>> SourceOf(Result<GsymImage> image,
                                             const SymbolizeOptions& options,
                                             AddressSource* symbols) {
  if (!image) return Fail(std::move(image.error()).WithContext(options.file));
  return std::make_unique<GsymSource>(std::move(*image), options, symbols);
}

// Debug data of a file, as much of them as was needed so far.
class ConvertedSource : public AddressSource {
 public:
  ConvertedSource(ElfFunctions functions, const SymbolizeOptions& options,
                  std::unique_ptr<AddressSource> symbols)
      : options_(options),
        symbols_(std::move(symbols)),
        functions_(std::make_unique<ElfFunctions>(std::move(functions))),
        bytes_left_(kExcerptTimes * functions_->entry_bytes()) {}

  Status Prepare(std::span<const uint64_t> addresses) override {
    if (functions_ == nullptr) return {};
    std::vector<uint64_t> sorted(addresses.begin(), addresses.end());
    std::ranges::sort(sorted);
    if (gsym_ != nullptr && std::ranges::includes(prepared_, sorted)) return {};
    // A caller with so many addresses most likely has more.
    if (sorted.size() >= kManyAddresses) return ConvertAll();
    return ConvertFor(std::move(sorted));
  }

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    const bool is_ready = Prepare({&address, 1}).has_value();
    if (is_ready && gsym_ != nullptr) {
      gsym_->Resolve(address, answer);
    } else {
      symbols_->Resolve(address, answer);
    }
  }

 private:
  // Excerpts may read this many times the entries of all units. Reading takes a
  // third of a whole conversion's time at most, so both together take less than
  // twice that.
  static constexpr uint64_t kExcerptTimes = 2;
  static constexpr size_t kManyAddresses = 4096;

  Status ConvertFor(std::vector<uint64_t> addresses) {
    auto excerpt = ConvertExcerptToGsym(*functions_, addresses, bytes_left_);
    // Excerpts that read too much together cost more than one conversion.
    if (!excerpt) return ConvertAll();
    bytes_left_ -= excerpt->entry_bytes;
    prepared_ = std::move(addresses);
    return Take(std::move(excerpt->bytes));
  }

  Status ConvertAll() {
    prepared_ = {};
    // Freed before the conversion, which needs memory itself. It takes the
    // functions, so that it is tried once also when it fails.
    gsym_.reset();
    auto made = ConvertFunctionsToGsym(std::move(functions_), {});
    if (made) return Take(std::move(made->bytes));
    // The file has no function with debug data: the symbols answer alone.
    if (made.error().code() == ErrorCode::kNotFound) return {};
    return Fail(std::move(made.error()).WithContext(options_.file));
  }

  Status Take(std::vector<std::byte> bytes) {
    auto source = SourceOf(GsymImage::OfMemory(std::move(bytes)), options_,
                           symbols_.get());
    if (!source) return Fail(std::move(source.error()));
    gsym_ = std::move(*source);
    return {};
  }

  SymbolizeOptions options_;
  std::unique_ptr<AddressSource> symbols_;
  std::unique_ptr<ElfFunctions> functions_;  // null: all are converted
  uint64_t bytes_left_;
  std::vector<uint64_t> prepared_;    // rising; what gsym_ is good for
  std::unique_ptr<GsymSource> gsym_;  // null: there are only symbols
};

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
  auto functions = ElfFunctions::Open(source, finder);
  if (!functions) {
    return Fail(std::move(functions.error()).WithContext(options.file));
  }
  return std::make_unique<ConvertedSource>(std::move(*functions), options,
                                           std::move(symbols));
}

}  // namespace ksym
