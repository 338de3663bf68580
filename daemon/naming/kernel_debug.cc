// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/kernel_debug.h"

#include <elf.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/elf/build_id_note.h"
#include "ksym/elf/debug_file.h"
#include "ksym/elf/elf_image.h"
#include "ksym/elf/relocatable.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"
#include "ksym/process/mapped_file.h"

namespace profd {
namespace {

constexpr size_t kMaxNotesBytes = size_t{64} << 10;
constexpr const char* kDebugModules = "/usr/lib/debug/lib/modules/";

ksym::Result<ksym::ByteSource> OpenHost(const std::string& path) {
  auto opened = ksym::OpenFileOfHost(path);
  if (!opened) return ksym::Fail(std::move(opened.error()));
  return ksym::ByteSource::OfFile(std::move(opened->fd), opened->size);
}

// The finder for a file that was opened at that path.
ksym::DebugFileFinder FinderOf(const ksym::ByteSource& source,
                               const std::string& path) {
  const auto owner = source.owner();
  return {path, owner ? ksym::OnlyTrusted(*owner, OpenHost) : nullptr};
}

// The address that kernel addresses count from, in samples and in the image
// alike.
std::optional<uint64_t> FindText(const ksym::ByteSource& source,
                                 const ksym::ElfImage& image) {
  for (const ksym::ElfSection& section : image.sections()) {
    if (section.type != SHT_SYMTAB || section.link >= image.sections().size()) {
      continue;
    }
    const auto strings =
        ksym::SectionBytes::Open(source, image, image.sections()[section.link]);
    ksym::SymbolReader reader(source, image);
    if (!strings ||
        !reader.ReadSymbols(section, *strings, ksym::NameTable::kSymtab)) {
      continue;
    }
    // With its end, so that no longer name is taken for it.
    constexpr std::string_view kName("_stext\0", 7);
    for (const ksym::SymbolCandidate& symbol : std::move(reader).Take()) {
      if (symbol.binding != ksym::SymbolBinding::kGlobal) continue;
      std::string name(kName.size(), '\0');
      if (strings->ReadAt(symbol.name,
                          std::as_writable_bytes(std::span(name))) &&
          name == kName) {
        return symbol.start.value;
      }
    }
  }
  return std::nullopt;
}

// "ext4" for "kernel/fs/ext4/ext4.ko.xz". The kernel has '_' where the file's
// name may have '-'.
std::string ModuleName(std::string_view path) {
  std::string name(path.substr(path.rfind('/') + 1));
  name.resize(std::min(name.size(), name.find(".ko")));
  std::ranges::replace(name, '-', '_');
  return name;
}

// The module's path in the list of those that are installed, without the end
// that says how it is compressed.
std::optional<std::string> FindInstalledModule(const KernelDebugPlaces& places,
                                               std::string_view name) {
  const auto fd = ksym::OpenForRead(places.root + "/lib/modules/" +
                                    places.release + "/modules.dep");
  if (!fd) return std::nullopt;
  std::optional<std::string> found;
  const auto read = ksym::ForEachLine(fd->get(), [&](std::string_view line) {
    std::string_view path = ksym::TakeField(line, ':');
    if (ModuleName(path) != name) return true;
    path = path.substr(0, path.rfind(".ko") + 3);
    found = path;
    return false;
  });
  return read ? found : std::nullopt;
}

// The files of a kernel that is not installed, but its debug data are.
std::vector<std::string> FindInDebugDirectory(const KernelDebugPlaces& places,
                                              std::string_view name) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator file(
      places.root + kDebugModules + places.release, error);
  for (; !error && file != fs::recursive_directory_iterator();
       file.increment(error)) {
    const std::string path = file->path();
    const bool is_module = path.find(".ko", path.rfind('/')) != path.npos;
    if (is_module && ModuleName(path) == name) {
      found.push_back(path.substr(places.root.size()));
    }
  }
  return found;
}

std::vector<std::string> ModuleDebugPaths(const KernelDebugPlaces& places,
                                          std::string_view name) {
  const auto path = FindInstalledModule(places, name);
  return path ? ModulePaths(places.release, *path)
              : FindInDebugDirectory(places, name);
}

// The module's debug file, if this is it.
std::optional<ModuleDebugFile> OpenModule(const std::string& path,
                                          const std::string& build_id) {
  auto source = OpenHost(path);
  if (!source) return std::nullopt;
  const auto image = ksym::ElfImage::Parse(*source);
  if (!image || !ksym::IsRelocatable(*source) ||
      ksym::ToHex(image->build_id()) != build_id ||
      image->FindSection(".debug_info") == nullptr) {
    return std::nullopt;
  }
  auto symbols = ModuleSymbols::Load(*source, *image);
  if (!symbols) return std::nullopt;
  auto finder = FinderOf(*source, path);
  return ModuleDebugFile{{std::move(*source), std::move(finder)},
                         path,
                         build_id,
                         std::move(*symbols)};
}

}  // namespace

KernelBuildIds BuildIdsOfRunningKernel(std::string_view release,
                                       const std::string& root) {
  utsname name = {};
  const bool is_running = ::uname(&name) == 0 && release == name.release;
  return [is_running, root](std::string_view part) -> std::string {
    if (!is_running) return {};
    const std::string path = part == "[kernel]"
                                 ? root + "/sys/kernel/notes"
                                 : root + "/sys/module/" + std::string(part) +
                                       "/notes/.note.gnu.build-id";
    const auto notes = ksym::ReadFile(path, kMaxNotesBytes);
    return notes ? ksym::FindBuildIdNote(*notes) : std::string();
  };
}

KernelBuildIds BuildIdsOfCapture(const std::vector<KernelPart>& parts) {
  return [parts](std::string_view name) -> std::string {
    const auto part = std::ranges::find(parts, name, &KernelPart::name);
    return part == parts.end() ? std::string() : part->build_id;
  };
}

std::vector<std::string> KernelImagePaths(std::string_view release) {
  const std::string name(release);
  return {"/usr/lib/debug/boot/vmlinux-" + name,
          "/usr/lib/debug/lib/modules/" + name + "/vmlinux",
          "/usr/lib/debug/vmlinux-" + name,
          "/lib/modules/" + name + "/vmlinux",
          "/lib/modules/" + name + "/build/vmlinux",
          "/boot/vmlinux-" + name};
}

std::vector<std::string> ModulePaths(std::string_view release,
                                     std::string_view path) {
  const std::string directory = "/lib/modules/" + std::string(release) + "/";
  const std::string module(path);
  std::vector<std::string> paths;
  for (const std::string& debug :
       {"/usr/lib/debug" + directory, "/usr/lib/debug/usr" + directory}) {
    paths.push_back(debug + module + ".debug");
    paths.push_back(debug + module);
  }
  paths.push_back(directory + module);
  constexpr std::string_view kInTree = "kernel/";
  if (module.starts_with(kInTree)) {
    paths.push_back(directory + "build/" + module.substr(kInTree.size()));
  }
  return paths;
}

ksym::Result<KernelDebugFile> FindKernelDebugFile(
    const KernelDebugPlaces& places) {
  // Where the build-id is not known, the first image of the release serves, and
  // the names of its functions are compared later (is_same_build).
  const std::string wanted =
      places.build_ids ? places.build_ids("[kernel]") : std::string();
  bool is_other = false;
  for (const std::string& path : KernelImagePaths(places.release)) {
    auto source = OpenHost(places.root + path);
    if (!source) continue;
    const auto image = ksym::ElfImage::Parse(*source);
    if (!image || image->build_id().empty()) continue;
    std::string build_id = ksym::ToHex(image->build_id());
    if (!wanted.empty() && build_id != wanted) {
      is_other = true;
      continue;
    }
    const auto text = FindText(*source, *image);
    if (!text) continue;
    auto finder = FinderOf(*source, places.root + path);
    return KernelDebugFile{{std::move(*source), std::move(finder)},
                           places.root + path,
                           std::move(build_id),
                           *text,
                           !wanted.empty()};
  }
  if (is_other) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      "the kernel's image with debug data is of another build");
  }
  return ksym::Fail(ksym::ErrorCode::kNotFound,
                    "no image of the kernel with debug data");
}

ksym::Result<ModuleDebugFile> FindModuleDebugFile(
    const KernelDebugPlaces& places, std::string_view name,
    const std::string& build_id) {
  for (const std::string& path :
       ksym::DebugFilePaths(build_id, std::nullopt, {})) {
    auto file = OpenModule(places.root + path, build_id);
    if (file) return std::move(*file);
  }
  for (const std::string& path : ModuleDebugPaths(places, name)) {
    auto file = OpenModule(places.root + path, build_id);
    if (file) return std::move(*file);
  }
  return ksym::Fail(ksym::ErrorCode::kNotFound,
                    "no debug data of the module, or of another build");
}

}  // namespace profd
