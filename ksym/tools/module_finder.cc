// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/module_finder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/trust.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/debug_file.h"
#include "ksym/elf/elf_image.h"
#include "ksym/gsym/gsym_format.h"
#include "ksym/process/mapped_file.h"

namespace ksym {
namespace {

std::string BuildIdPath(const std::string& build_id, const char* suffix) {
  return "/.build-id/" + build_id.substr(0, 2) + '/' + build_id.substr(2) +
         suffix;
}

std::string Absolute(const std::string& directory) {
  std::error_code ignored;
  return std::filesystem::absolute(directory, ignored).string();
}

Result<ByteSource> OpenSource(const std::string& path) {
  auto opened = OpenFileOfHost(path);
  if (!opened) return Fail(std::move(opened.error()));
  return ByteSource::OfFile(std::move(opened->fd), opened->size);
}

std::unexpected<Error> OtherBuildId(const std::string& path,
                                    const std::string& build_id) {
  return Fail(ErrorCode::kInvalid, path + ": has build-id " + build_id);
}

void LoadDwarf(const ByteSource& source, ModuleFile& file) {
  const std::string& path = file.path;
  const auto image = ElfImage::Parse(source);
  const auto owner = source.owner();
  if (!image || !owner) return;
  auto dwarf = DwarfPlaces::Open(source, *image,
                                 {path, path, OnlyTrusted(*owner, OpenSource)});
  if (dwarf) {
    file.dwarf = std::move(*dwarf);
  } else if (dwarf.error().code() != ErrorCode::kNotFound) {
    file.no_dwarf = dwarf.error().message();
  }
}

}  // namespace

size_t ModuleFile::memory_bytes() const {
  return (symbols ? symbols->memory_bytes() : 0) +
         (dwarf ? dwarf->memory_bytes() : 0);
}

std::string ModuleFile::Problem() const {
  const std::string& why = dwarf ? dwarf->losses().first : no_dwarf;
  if (why.empty()) return {};
  return path +
         (dwarf ? ": some debug data are not used: "
                : ": debug data are not used: ") +
         why;
}

Result<ModuleFinder::OpenedElf> ModuleFinder::OpenElf(
    const std::string& build_id) const {
  std::vector<std::string> directories = places_.debug_directories;
  if (directories.empty()) directories.emplace_back("/usr/lib/debug");
  // What cannot be opened in one directory may be in the next.
  std::optional<Error> first;
  for (const std::string& directory : directories) {
    std::string path = Absolute(directory) + BuildIdPath(build_id, ".debug");
    auto source = OpenSource(path);
    if (source) return OpenedElf{std::move(*source), std::move(path)};
    if (source.error().code() != ErrorCode::kNotFound && !first) {
      first = std::move(source.error());
    }
  }
  if (places_.debuginfod != nullptr) {
    auto source = places_.debuginfod->Find(build_id);
    if (source) return OpenedElf{std::move(*source), build_id};
  }
  if (first) return Fail(std::move(*first));
  return Fail(ErrorCode::kNotFound, "could not find build ID");
}

Result<GsymImage> ModuleFinder::OpenGsym(const std::string& build_id) const {
  // The second name is that of gen_gsym's files, the third the cache's.
  const std::string names[] = {BuildIdPath(build_id, ".gsym"),
                               '/' + build_id + ".gsym",
                               '/' + build_id + ".1.gsym"};
  for (const std::string& directory : places_.gsym_directories) {
    for (const std::string& name : names) {
      std::string path = Absolute(directory);
      path += name;
      auto mapped = MappedFile::Open(path);
      if (!mapped && mapped.error().code() == ErrorCode::kNotFound) continue;
      if (!mapped) return Fail(std::move(mapped.error()));
      auto image = GsymImage::OfFile(std::move(*mapped));
      if (!image) return Fail(std::move(image.error()).WithContext(path));
      const std::string uuid = ToHex(image->file().uuid());
      const bool is_same =
          // A GSYM file holds no more bytes of a longer build-id.
          uuid == build_id.substr(0, 2 * size_t{kGsymMaxUuidBytes});
      // A file without one was put there on purpose.
      if (!is_same && !uuid.empty()) return OtherBuildId(path, uuid);
      return image;
    }
  }
  return Fail(ErrorCode::kNotFound, "no GSYM file");
}

Result<ModuleFile> ModuleFinder::Load(const std::string& build_id) const {
  ModuleFile file;
  if (auto gsym = OpenGsym(build_id)) {
    file.gsym = std::move(*gsym);
  } else if (gsym.error().code() != ErrorCode::kNotFound) {
    return Fail(std::move(gsym.error()));
  }
  // Also where there is a GSYM file: the linker's names go before it.
  auto elf = OpenElf(build_id);
  if (!elf && file.gsym) return file;
  if (!elf) return Fail(std::move(elf.error()));
  auto symbols = LinkerSymbols::Load(elf->source);
  if (!symbols) return Fail(std::move(symbols.error()).WithContext(elf->path));
  // A file without one was put there on purpose.
  if (!symbols->build_id().empty() && symbols->build_id() != build_id) {
    return OtherBuildId(elf->path, symbols->build_id());
  }
  file.symbols = std::move(*symbols);
  file.path = elf->path;
  if (!file.gsym) LoadDwarf(elf->source, file);
  return file;
}

}  // namespace ksym
