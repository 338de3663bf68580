#include "ksym/tools/address_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/demangle/demangle.h"
#include "ksym/elf/debuginfod_client.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"
#include "ksym/tools/gsym_source.h"

namespace ksym {
namespace {

using Demangling = SymbolizerOptions::Demangle;
using SourceResult = Result<std::unique_ptr<AddressSource>>;

std::string Shown(std::string_view name, Demangling demangle) {
  return demangle == Demangling::kOn ? Demangle(name) : std::string(name);
}

// What a source has when it has a name and nothing else.
void SetName(std::string_view name, AddressAnswer& answer) {
  answer.frames.push_back({.function = name, .directory = {}, .file = {}});
}

void Clear(AddressAnswer& answer) {
  answer.frames.clear();
  answer.module = {};
  answer.symbol_start.reset();
  answer.reason = {};
}

class FileSource : public AddressSource {
 public:
  FileSource(ElfSymbols symbols, const SymbolizeOptions& options)
      : symbols_(std::move(symbols)),
        path_(options.file),
        demangle_(options.demangle) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    Clear(answer);
    answer.module = path_;
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
    SetName(name_, answer);
    answer.symbol_start = match->start.value;
  }

 private:
  Unresolved ReasonOf(uint64_t address) const {
    const auto holds = [address](const ElfSegment& segment) {
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

Result<ByteSource> OpenDebugFile(const std::string& path) {
  auto opened = OpenFileOfHost(path);
  if (!opened) return Fail(std::move(opened.error()));
  return ByteSource::OfFile(std::move(opened->fd), opened->size);
}

// What Symbolizer and ElfSymbols take; nothing without a client.
DebugFileSource SourceOf(DebuginfodClient* client) {
  if (client == nullptr) return nullptr;
  return
      [client](const std::string& build_id) { return client->Find(build_id); };
}

Result<ByteSource> OpenRegularFile(const std::string& path) {
  auto fd = OpenForRead(path);
  if (!fd) return Fail(std::move(fd.error()));
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return FailErrno(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kInvalid, path + ": not a regular file");
  }
  return ByteSource::OfFile(std::move(*fd),
                            static_cast<uint64_t>(status.st_size));
}

SourceResult OpenFileSource(const SymbolizeOptions& options,
                            DebuginfodClient* client) {
  auto file = OpenRegularFile(options.file);
  if (!file) return Fail(std::move(file.error()));
  // The debug file may lie beside the file itself, not beside a link to it.
  std::error_code ignored;
  const std::string path = std::filesystem::canonical(options.file, ignored);
  const DebugFileFinder finder = {path, OpenDebugFile, SourceOf(client)};
  auto symbols = ElfSymbols::Load(std::move(*file), finder);
  if (!symbols) {
    return Fail(std::move(symbols.error()).WithContext(options.file));
  }
  auto source = std::make_unique<FileSource>(std::move(*symbols), options);
  if (!options.inlines) return source;
  // Again: the symbols keep their own descriptor.
  const auto program = OpenRegularFile(options.file);
  if (!program) return Fail(program.error());
  return OpenConvertedFile(options, *program, finder, std::move(source));
}

// The 22nd field of /proc/PID/stat: what tells a process from a later one with
// its pid. The name before it may hold anything.
Result<uint64_t> ReadStartNs(uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const auto text = ReadFile(path, 4096);
  if (!text) return Fail(text.error());
  const size_t name_end = text->rfind(") ");
  std::string_view rest = *text;
  rest.remove_prefix(name_end == std::string::npos ? rest.size()
                                                   : name_end + 2);
  constexpr int kFieldsBefore = 19;
  for (int i = 0; i < kFieldsBefore; ++i) TakeField(rest, ' ');
  const auto ticks = ParseUnsigned(TakeField(rest, ' '), 10);
  if (!ticks) return Fail(ErrorCode::kCorrupt, path + ": no start time");
  const auto ticks_per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return *ticks * (1'000'000'000 / ticks_per_second);
}

class ProcessSource : public AddressSource {
 public:
  explicit ProcessSource(const SymbolizeOptions& options)
      : symbolizer_({.demangle = options.demangle}) {
    image_.id.pid = options.pid;
  }

  void SetDebugFileSource(DebugFileSource source) {
    symbolizer_.SetDebugFileSource(std::move(source));
  }

  // Reads the mappings; fails when the process is gone.
  Status Read() {
    const auto start = ReadStartNs(image_.id.pid);
    if (!start && start.error().code() == ErrorCode::kNotFound) {
      return Fail(ErrorCode::kNotFound,
                  "there is no process " + std::to_string(image_.id.pid));
    }
    if (!start) return Fail(start.error());
    if (image_.id.start_ns != 0 && image_.id.start_ns != *start) {
      return Fail(ErrorCode::kNotFound, "another process has the pid now");
    }
    auto mappings = ReadMaps(image_.id.pid);
    if (!mappings) return Fail(std::move(mappings.error()));
    image_.id.start_ns = *start;
    image_.mappings = std::move(*mappings);
    return {};
  }

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    Clear(answer);
    UserSymbol symbol = symbolizer_.Resolve(image_, {address});
    const bool unknown = symbol.reason == Unresolved::kUnmapped ||
                         symbol.reason == Unresolved::kNoProcess;
    if (unknown) {
      if (Read()) {
        symbol = symbolizer_.Resolve(image_, {address});
      } else {
        symbol.reason = Unresolved::kNoProcess;
      }
    }
    answer.module = symbol.module;
    if (symbol.reason != Unresolved::kNone) {
      answer.reason = UnresolvedName(symbol.reason);
    } else {
      SetName(symbol.name, answer);
      answer.symbol_start = address - symbol.symbol_offset;
    }
  }

 private:
  Symbolizer symbolizer_;
  ProcessImage image_;
};

SourceResult OpenProcessSource(const SymbolizeOptions& options,
                               DebuginfodClient* client) {
  auto source = std::make_unique<ProcessSource>(options);
  source->SetDebugFileSource(SourceOf(client));
  const auto read = source->Read();
  if (!read) return Fail(read.error());
  return source;
}

class KernelSource : public AddressSource {
 public:
  KernelSource(KernelSymbolSource symbols, Demangling demangle)
      : symbols_(std::move(symbols)), demangle_(demangle) {}

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    Clear(answer);
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
    SetName(name_, answer);
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
  auto symbols = OpenKernelSymbols("/proc/kallsyms");
  if (!symbols) return Fail(std::move(symbols.error()));
  return std::make_unique<KernelSource>(std::move(*symbols), options.demangle);
}

}  // namespace

Result<std::unique_ptr<AddressSource>> OpenAddressSource(
    const SymbolizeOptions& options, DebuginfodClient* client) {
  switch (options.source) {
    case SymbolizeOptions::Source::kProcess:
      return OpenProcessSource(options, client);
    case SymbolizeOptions::Source::kKernel:
      return OpenKernelSource(options);
    case SymbolizeOptions::Source::kGsym:
      return OpenGsymFile(options);
    case SymbolizeOptions::Source::kFile:
    case SymbolizeOptions::Source::kMarkup:  // has no single source
      break;
  }
  return OpenFileSource(options, client);
}

}  // namespace ksym
