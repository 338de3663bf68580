// SPDX-License-Identifier: Apache-2.0
#include "daemon/symbolize/name_profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/naming/kernel_names.h"
#include "daemon/naming/resolve.h"
#include "daemon/output/format.h"
#include "daemon/raw/raw_file.h"
#include "daemon/symbolize/build_id_files.h"
#include "ksym/base/file.h"
#include "ksym/base/printable.h"
#include "ksym/demangle/demangle.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/symbolizer.h"
#include "ksym/tools/module_finder.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Result;
using ksym::Status;
using Demangling = ksym::SymbolizerOptions::Demangle;

constexpr size_t kMaxRawBytes = size_t{1} << 31;

void Warn(std::string_view text) {
  std::fputs(
      ("ksym-symbolize: warning: " + ksym::Printable(text) + "\n").c_str(),
      stderr);
}

Result<RawCapture> Load(const std::string& path) {
  const auto file = ksym::OpenInput(path);
  if (!file) return Fail(file.error());
  auto bytes = ksym::ReadAll(file->get(), kMaxRawBytes);
  if (!bytes) return Fail(std::move(bytes.error()).WithContext(path));
  auto capture = ReadRawCapture(std::move(*bytes));
  if (!capture) return Fail(std::move(capture.error()).WithContext(path));
  return capture;
}

// Whether a file's symbols could have told the name.
bool IsOfFile(const Frame& frame) {
  return frame.kind->is_in_file && frame.object != 0 &&
         frame.reason != ksym::Unresolved::kNone &&
         frame.reason != ksym::Unresolved::kAnonymous;
}

// Names what only a GSYM file knows.
class GsymNames {
 public:
  GsymNames(const ModuleIndex& index, const ksym::SymbolizeOptions& options)
      : index_(index),
        finder_(options.markup.names.places),
        demangle_(options.demangle) {}

  void Name(Profile& profile) {
    for (Frame& frame : profile.frames) {
      if (IsOfFile(frame) && frame.build_id != 0) NameFrame(profile, frame);
    }
  }

 private:
  void NameFrame(Profile& profile, Frame& frame) {
    const std::string build_id(profile.String(frame.build_id));
    const MappedObject* module = index_.FindBuildId(build_id);
    if (module == nullptr) return;
    const auto address = module->AddressOf({frame.file_offset});
    const ksym::GsymImage* gsym = Open(build_id);
    if (!address || gsym == nullptr) return;
    const auto found = ksym::LookupGsym(gsym->file(), *address, answer_);
    if (!found || !*found || answer_.frames.empty()) return;
    const std::string_view name = answer_.frames.back().function;
    frame.name = profile.strings.Intern(demangle_ == Demangling::kOn
                                            ? ksym::Demangle(name)
                                            : std::string(name));
    frame.symbol_offset = *address - answer_.start;
    frame.reason = ksym::Unresolved::kNone;
  }

  // Null: there is none.
  const ksym::GsymImage* Open(const std::string& build_id) {
    const auto [place, is_new] = files_.try_emplace(build_id);
    std::optional<ksym::GsymImage>& file = place->second;
    if (is_new) {
      auto opened = finder_.OpenGsym(build_id);
      if (opened) {
        file = std::move(*opened);
      } else if (opened.error().code() != ksym::ErrorCode::kNotFound) {
        Warn(opened.error().message());
      }
    }
    return file.has_value() ? &file.value() : nullptr;
  }

  const ModuleIndex& index_;
  ksym::ModuleFinder finder_;
  Demangling demangle_;
  ksym::GsymAnswer answer_;
  std::map<std::string, std::optional<ksym::GsymImage>> files_;
};

// Each file once, by build-id and name, with how many addresses it would have
// named. What a file with a symbol table does not name is not missing.
void ListMissing(const Profile& profile) {
  std::map<std::pair<std::string, std::string>, uint64_t> missing;
  for (const Frame& frame : profile.frames) {
    if (!IsOfFile(frame) || frame.reason == ksym::Unresolved::kNoSymbol) {
      continue;
    }
    const std::string_view module = profile.String(frame.object);
    if (module.starts_with('[')) continue;
    ++missing[{std::string(profile.String(frame.build_id)),
               std::string(module)}];
  }
  for (const auto& [file, addresses] : missing) {
    const auto& [build_id, name] = file;
    Warn(fmt::format("no symbols for {} {} ({} addresses)",
                     build_id.empty() ? "(no build-id)" : build_id, name,
                     addresses));
  }
}

Result<KernelNames> KernelOf(const RawCapture& capture,
                             const std::string& given) {
  if (given.empty()) return KernelNames::OfCapture(capture);
  return KernelNames::OfFile(given);
}

ResolveOptions ResolveOptionsOf(const ksym::SymbolizeOptions& options) {
  ResolveOptions made;
  made.demangle = options.demangle;
  return made;
}

ksym::SymbolizerOptions SymbolizerOptionsOf(
    const ksym::SymbolizeOptions& options, BuildIdFiles& files,
    const RawCapture& capture) {
  ksym::SymbolizerOptions made;
  made.demangle = options.demangle;
  made.files = ksym::SymbolizerOptions::Files::kOfHost;
  made.program_files = &files;
  made.vdso_image = capture.vdso_image;
  return made;
}

}  // namespace

Status NameRawProfile(const ksym::SymbolizeOptions& options,
                      ksym::DebuginfodClient* client) {
  const auto format = ParseOutputFormat(options.format);
  if (!format) return Fail(format.error());
  auto capture = Load(options.file);
  if (!capture) return Fail(std::move(capture.error()));
  const auto& places = options.markup.names;
  const auto kernel = KernelOf(*capture, places.kernel_symbols);
  if (!kernel) return Fail(kernel.error());
  if (!kernel->warning().empty()) Warn(kernel->warning());
  if (capture->modules.empty()) {
    Warn(
        "the capture has no build-ids; capture again, or name it where it was "
        "taken: ksym-profile --replay " +
        options.file);
  }
  const ModuleIndex index(capture->modules);
  BuildIdFiles files(index, places.places.debug_directories);
  ksym::Symbolizer symbolizer(SymbolizerOptionsOf(options, files, *capture));
  if (client != nullptr) {
    symbolizer.SetDebugFileSource(
        [client](const std::string& id) { return client->Find(id); });
  }
  SymbolizerNames names(symbolizer);
  Resolver resolver(ResolveOptionsOf(options));
  UseKernelNames(*kernel, resolver);
  ProfileBuilder builder(ProfileBuilder::Parts::kOne);
  resolver.Add(capture->profile, names, builder);
  Profile profile = std::move(builder).Finish(capture->profile.metadata);
  // After the symbols, as it names what they did not, and before the list of
  // what is missing.
  GsymNames(index, options).Name(profile);
  ListMissing(profile);
  return Write(profile, *format, {}, [](std::string_view piece) {
    return ksym::WriteAll(STDOUT_FILENO, piece);
  });
}

}  // namespace profd
