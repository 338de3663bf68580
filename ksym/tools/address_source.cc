// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/address_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/trust.h"
#include "ksym/demangle/demangle.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/fetch/debuginfod_client.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "ksym/process/mapped_file.h"
#include "ksym/symbolizer.h"
#include "ksym/tools/gsym_source.h"
#include "ksym/tools/process_source.h"

namespace ksym {
namespace {

using Demangling = SymbolizerOptions::Demangle;
using SourceResult = Result<std::unique_ptr<AddressSource>>;

std::string Shown(std::string_view name, Demangling demangle) {
  return demangle == Demangling::kOn ? Demangle(name) : std::string(name);
}

class FileSource : public AddressSource {
 public:
  FileSource(ElfSymbols symbols, const SymbolizeOptions& options)
      : symbols_(std::move(symbols)),
        path_(options.file),
        demangle_(options.demangle) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    ClearAnswer(answer);
    answer.module = path_;
    answer.build_id = symbols_.build_id();
    const auto match = symbols_.FindAddress({address});
    if (!match) {
      answer.reason = UnresolvedName(ReasonOf(address));
      return;
    }
    const auto name = symbols_.ReadName(*match);
    if (!name) {
      answer.reason = UnresolvedName(Unresolved::kMalformed);
      return;
    }
    name_ = Shown(*name, demangle_);
    AddName(name_, answer);
    answer.symbol_start = match->start.value;
  }

 private:
  Unresolved ReasonOf(uint64_t address) const {
    const auto holds = [address](const ElfSegment& segment) {
      // An address in front of it wraps to more than any size.
      return address - segment.address.value < segment.file_size;
    };
    if (std::ranges::none_of(symbols_.segments(), holds)) {
      return Unresolved::kUnmapped;
    }
    return symbols_.symbol_count() == 0 ? Unresolved::kNoSymbols
                                        : Unresolved::kNoSymbol;
  }

  ElfSymbols symbols_;
  std::string path_;
  Demangling demangle_;
  std::string name_;  // of the last answer
};

using Reading = SymbolizeOptions::Reading;

Result<ByteSource> SourceOf(UniqueFd fd, uint64_t size, Reading reading) {
  if (reading == Reading::kCopy) return ByteSource::OfFile(std::move(fd), size);
  return ByteSource::OfMappedFile(std::move(fd), size);
}

std::function<Result<ByteSource>(const std::string&)> OpenerOfDebugFiles(
    Reading reading) {
  return [reading](const std::string& path) -> Result<ByteSource> {
    auto opened = OpenFileOfHost(path);
    if (!opened) return Fail(std::move(opened.error()));
    return SourceOf(std::move(opened->fd), opened->size, reading);
  };
}

// What Symbolizer and ElfSymbols take; nothing without a client.
DebugFileSource FetcherOf(DebuginfodClient* client) {
  if (client == nullptr) return nullptr;
  return
      [client](const std::string& build_id) { return client->Find(build_id); };
}

Result<ByteSource> OpenRegularFile(const std::string& path, Reading reading) {
  auto fd = OpenForRead(path);
  if (!fd) return Fail(std::move(fd.error()));
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return FailErrno(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kInvalid, path + ": not a regular file");
  }
  return SourceOf(std::move(*fd), static_cast<uint64_t>(status.st_size),
                  reading);
}

SourceResult OpenFileSource(const SymbolizeOptions& options,
                            DebuginfodClient* client) {
  auto file = OpenRegularFile(options.file, Reading::kCopy);
  if (!file) return Fail(std::move(file.error()));
  // The debug file may lie beside the file itself, not beside a link to it.
  std::error_code ignored;
  // Without the path a debug file is looked for by the build-id alone.
  const std::string path = std::filesystem::canonical(options.file, ignored);
  const auto owner = file->owner();
  if (!owner) return Fail(Error(owner.error()).WithContext(options.file));
  const DebugFileFinder finder = {
      path, OnlyTrusted(*owner, OpenerOfDebugFiles(options.reading)),
      FetcherOf(client)};
  auto symbols = ElfSymbols::Load(std::move(*file), finder);
  if (!symbols) {
    return Fail(std::move(symbols.error()).WithContext(options.file));
  }
  auto source = std::make_unique<FileSource>(std::move(*symbols), options);
  if (!options.inlines) return source;
  // Again: the symbols keep their own descriptor.
  const auto program = OpenRegularFile(options.file, options.reading);
  if (!program) return Fail(program.error());
  return OpenConvertedFile(options, *program, finder, std::move(source));
}

class KernelSource : public AddressSource {
 public:
  KernelSource(KernelSymbolSource symbols, Demangling demangle)
      : symbols_(std::move(symbols)), demangle_(demangle) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    ClearAnswer(answer);
    answer.module = "[kernel]";
    const auto symbol = symbols_.Find({address}, buffer_);
    if (!symbol) {
      answer.reason =
          UnresolvedName(symbols_.symbol_count() == 0 ? Unresolved::kNoSymbols
                                                      : Unresolved::kNoSymbol);
      return;
    }
    if (!symbol->module.empty()) {
      module_ = '[' + std::string(symbol->module) + ']';
      answer.module = module_;
    }
    name_ = Shown(symbol->name, demangle_);
    AddName(name_, answer);
    answer.symbol_start = symbol->start.value;
  }

 private:
  KernelSymbolSource symbols_;
  SymbolNameBuffer buffer_;
  Demangling demangle_;
  std::string name_;  // of the last answer
  std::string module_;
};

SourceResult OpenKernelSource(const SymbolizeOptions& options) {
  auto symbols = OpenKernelSymbols(
      options.file.empty() ? std::string(kRunningKernelSymbols) : options.file);
  if (!symbols) return Fail(std::move(symbols.error()));
  return std::make_unique<KernelSource>(std::move(*symbols), options.demangle);
}

}  // namespace

void ClearAnswer(AddressAnswer& answer) {
  answer.frames.clear();
  answer.module = {};
  answer.build_id = {};
  answer.symbol_start.reset();
  answer.reason = {};
  answer.is_kept = false;
}

void AddName(std::string_view name, AddressAnswer& answer) {
  answer.frames.push_back({.function = name, .directory = {}, .file = {}});
}

Result<std::unique_ptr<AddressSource>> OpenAddressSource(
    const SymbolizeOptions& options, DebuginfodClient* client) {
  switch (options.source) {
    case SymbolizeOptions::Source::kProcess:
      return OpenProcess(options, FetcherOf(client));
    case SymbolizeOptions::Source::kKernel:
      return OpenKernelSource(options);
    case SymbolizeOptions::Source::kGsym:
      return OpenGsymFile(options);
    case SymbolizeOptions::Source::kFile:
    case SymbolizeOptions::Source::kMarkup:  // have no single source
    case SymbolizeOptions::Source::kProfile:
      break;
  }
  return OpenFileSource(options, client);
}

}  // namespace ksym
