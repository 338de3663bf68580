#include "daemon/profile/kernel_debug.h"

#include <elf.h>
#include <sys/utsname.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/elf/build_id_note.h"
#include "ksym/elf/elf_image.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"
#include "ksym/process/mapped_file.h"

namespace profd {
namespace {

constexpr size_t kMaxNotesBytes = size_t{64} << 10;

ksym::Result<ksym::ByteSource> OpenHost(const std::string& path) {
  auto opened = ksym::OpenFileOfHost(path);
  if (!opened) return ksym::Fail(std::move(opened.error()));
  return ksym::ByteSource::OfFile(std::move(opened->fd), opened->size);
}

// What kernel addresses count from in samples and in the image alike.
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

// The running kernel's build-id if it is of that release and says so.
std::string RunningBuildId(std::string_view release,
                           const std::string& notes_path) {
  utsname name = {};
  if (::uname(&name) != 0 || release != name.release) return {};
  const auto notes = ksym::ReadFile(notes_path, kMaxNotesBytes);
  return notes ? ksym::FindBuildIdNote(*notes) : std::string();
}

}  // namespace

std::vector<std::string> KernelImagePaths(std::string_view release) {
  const std::string name(release);
  return {"/usr/lib/debug/boot/vmlinux-" + name,
          "/usr/lib/debug/lib/modules/" + name + "/vmlinux",
          "/usr/lib/debug/vmlinux-" + name,
          "/lib/modules/" + name + "/vmlinux",
          "/lib/modules/" + name + "/build/vmlinux",
          "/boot/vmlinux-" + name};
}

ksym::Result<KernelDebugFile> FindKernelDebugFile(
    std::string_view release, const std::vector<std::string>& paths,
    const std::string& notes_path) {
  const std::string running = RunningBuildId(release, notes_path);
  bool is_other = false;
  for (const std::string& path : paths) {
    auto source = OpenHost(path);
    if (!source) continue;
    const auto image = ksym::ElfImage::Parse(*source);
    if (!image || image->build_id().empty()) continue;
    std::string build_id = ksym::ToHex(image->build_id());
    if (!running.empty() && build_id != running) {
      is_other = true;
      continue;
    }
    const auto text = FindText(*source, *image);
    if (!text) continue;
    return KernelDebugFile{{std::move(*source), {path, OpenHost}},
                           path,
                           std::move(build_id),
                           *text,
                           !running.empty()};
  }
  if (is_other) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      "the kernel's image with debug data is of another build");
  }
  return ksym::Fail(ksym::ErrorCode::kNotFound,
                    "no image of the kernel with debug data");
}

}  // namespace profd
