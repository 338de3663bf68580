// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/module_table.h"

#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/elf/build_id_note.h"
#include "ksym/elf/elf_image.h"
#include "ksym/kernel/module_list.h"
#include "ksym/process/mapped_file.h"

namespace profd {
namespace {

// After so many processes through which a file could not be opened it is not
// tried again.
constexpr uint32_t kMaxFailures = 8;
constexpr size_t kMaxNotesBytes = size_t{64} << 10;
constexpr size_t kMaxModulesBytes = size_t{4} << 20;

bool IsFile(const ksym::Mapping& mapping) {
  return mapping.path.starts_with('/') && !mapping.path.starts_with("//");
}

// Whether the module is there: a file without headers or build-id is none.
bool ReadHeaders(ksym::OpenedFile opened, MappedObject& module) {
  const auto source =
      ksym::ByteSource::OfFile(std::move(opened.fd), opened.size);
  const auto image = ksym::ElfImage::Parse(source);
  if (!image || image->build_id().empty()) return false;
  const std::string& mapped = opened.mapped_build_id;
  if (!mapped.empty() && mapped != image->build_id()) return false;
  module.build_id = ksym::ToHex(image->build_id());
  for (const ksym::ElfSegment& segment : image->segments()) {
    if (!segment.executable) continue;
    module.segments.push_back(
        {segment.file_offset.value, segment.file_size, segment.address.value});
  }
  return true;
}

std::string BuildIdIn(const std::string& notes_path) {
  const auto notes = ksym::ReadFile(notes_path, kMaxNotesBytes);
  return notes ? ksym::FindBuildIdNote(*notes) : std::string();
}

// The bounds in a listing that is sorted; 0 where addresses are hidden.
struct TextBounds {
  uint64_t start = 0;
  uint64_t end = 0;
};

TextBounds ReadTextBounds() {
  TextBounds bounds;
  const auto fd = ksym::OpenForRead("/proc/kallsyms");
  if (!fd) return bounds;
  const auto take = [&](std::string_view line) {
    const auto address = ksym::ParseUnsigned(ksym::TakeField(line, ' '), 16);
    ksym::TakeField(line, ' ');  // the symbol's type
    if (line == "_stext") bounds.start = address.value_or(0);
    if (line == "_etext") bounds.end = address.value_or(0);
    return line != "_etext";
  };
  const auto read = ksym::ForEachLine(fd->get(), take);
  return read ? bounds : TextBounds();
}

ksym::Result<ksym::OpenedFile> OpenMapped(uint32_t pid,
                                          const ksym::Mapping& mapping,
                                          ksym::FileOpener& opener) {
  auto opened = opener.Hold(pid, mapping);
  // This holds for a process that this one may not look into, too: the inode
  // tells.
  if (!opened) opened = opener.HoldOfHost(mapping);
  if (!opened) return opened;
  auto readable = opener.Open(*opened);
  if (!readable) return ksym::Fail(std::move(readable.error()));
  return opened;
}

}  // namespace

void ModuleTable::Add(const ksym::ProcessImage& image,
                      ksym::FileOpener& opener) {
  for (const ksym::Mapping& mapping : image.mappings) {
    if (!IsFile(mapping)) continue;
    Entry& entry = entries_[KeyOf(mapping)];
    if (entry.is_done) continue;
    auto opened = OpenMapped(image.id.pid, mapping, opener);
    if (!opened) {
      entry.is_done = ++entry.failures >= kMaxFailures;
      continue;
    }
    entry.is_done = true;
    MappedObject& module = entry.module;
    if (!ReadHeaders(std::move(*opened), module)) continue;
    module.device_major = mapping.device_major;
    module.device_minor = mapping.device_minor;
    module.inode = mapping.inode;
    module.path = mapping.path;
  }
}

std::vector<MappedObject> ModuleTable::Modules() const {
  std::vector<MappedObject> modules;
  for (const auto& [key, entry] : entries_) {
    if (!entry.module.build_id.empty()) modules.push_back(entry.module);
  }
  return modules;
}

std::vector<KernelPart> ReadKernelParts() {
  std::vector<KernelPart> parts;
  const TextBounds text = ReadTextBounds();
  std::string build_id = BuildIdIn("/sys/kernel/notes");
  if (text.start != 0 && text.end > text.start && !build_id.empty()) {
    parts.push_back(
        {"[kernel]", std::move(build_id), text.start, text.end - text.start});
  }
  const auto listing = ksym::ReadFile("/proc/modules", kMaxModulesBytes);
  if (!listing) return parts;
  for (const ksym::KernelModule& module : ksym::ParseModules(*listing)) {
    const uint64_t start = module.memory.start.value;
    build_id =
        BuildIdIn("/sys/module/" + module.name + "/notes/.note.gnu.build-id");
    if (start == 0 || build_id.empty()) continue;
    parts.push_back({module.name, std::move(build_id), start,
                     module.memory.end - module.memory.start});
  }
  return parts;
}

}  // namespace profd
