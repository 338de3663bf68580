// SPDX-License-Identifier: Apache-2.0
#include "daemon/symbolize/build_id_files.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"
#include "ksym/elf/debug_file.h"
#include "ksym/elf/elf_image.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Result;

template <typename T>
void Append(const T& value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string BytesOfHex(std::string_view hex) {
  std::string bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return bytes;
}

std::string NoteOf(const MappedObject& module) {
  constexpr std::string_view kOwner("GNU\0", 4);
  std::string id = BytesOfHex(module.build_id);
  std::string note;
  Append(Elf64_Nhdr{.n_namesz = kOwner.size(),
                    .n_descsz = static_cast<Elf64_Word>(id.size()),
                    .n_type = NT_GNU_BUILD_ID},
         note);
  note += kOwner;
  note += id.append(-id.size() & 3u, '\0');
  return note;
}

// In memory, where it is gone with its descriptor.
Result<ksym::OpenedFile> OpenStandIn(const MappedObject& module) {
  ksym::UniqueFd fd(::memfd_create("stand-in", MFD_CLOEXEC));
  if (!fd.valid()) return ksym::FailErrno(errno, module.path);
  const auto written = ksym::WriteAll(fd.get(), MakeStandIn(module));
  if (!written) return Fail(written.error());
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) {
    return ksym::FailErrno(errno, module.path);
  }
  // Made by this program: everybody may believe it.
  const auto owner = ksym::OwnerOf(fd.get());
  if (!owner) return Fail(ksym::Error(owner.error()));
  return ksym::OpenedFile{.fd = std::move(fd),
                          .size = static_cast<uint64_t>(status.st_size),
                          .mtime_ns = ksym::MtimeNs(status),
                          .owner = *owner};
}

// Whether it is that file, with its code where the capture says it was. A file
// of debug data alone has other segments, or no bytes in its sections.
bool HasCodeOf(const ksym::OpenedFile& file, const MappedObject& module) {
  // A ByteSource owns its descriptor, and the file's is still needed.
  ksym::UniqueFd fd(::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0));
  const auto source = ksym::ByteSource::OfFile(std::move(fd), file.size);
  const auto image = ksym::ElfImage::Parse(source);
  if (!image || ksym::ToHex(image->build_id()) != module.build_id) {
    return false;
  }
  const auto is_there = [&](const CodeSegment& wanted) {
    return std::ranges::any_of(image->segments(), [&](const auto& segment) {
      return segment.executable &&
             segment.file_offset.value == wanted.file_offset &&
             segment.address.value == wanted.address &&
             segment.file_size == wanted.file_size;
    });
  };
  return std::ranges::all_of(module.segments, is_there) &&
         std::ranges::none_of(image->sections(), [](const auto& section) {
           return section.type == SHT_NOBITS &&
                  (section.flags & SHF_EXECINSTR) != 0;
         });
}

}  // namespace

std::string MakeStandIn(const MappedObject& module) {
  const std::string note = NoteOf(module);
  const size_t count = module.segments.size() + 1;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<Elf64_Half>(count);
  std::string out;
  Append(header, out);
  for (const CodeSegment& segment : module.segments) {
    Append(Elf64_Phdr{.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = segment.file_offset,
                      .p_vaddr = segment.address,
                      .p_paddr = segment.address,
                      // The file has no such bytes: only where they would be is
                      // asked of it.
                      .p_filesz = segment.file_size,
                      .p_memsz = segment.file_size,
                      .p_align = 0},
           out);
  }
  Append(Elf64_Phdr{.p_type = PT_NOTE,
                    .p_flags = PF_R,
                    .p_offset = sizeof(header) + count * sizeof(Elf64_Phdr),
                    .p_vaddr = 0,
                    .p_paddr = 0,
                    .p_filesz = note.size(),
                    .p_memsz = note.size(),
                    .p_align = 4},
         out);
  return out += note;
}

BuildIdFiles::BuildIdFiles(const ModuleIndex& index,
                           std::vector<std::string> directories)
    : index_(index), directories_(std::move(directories)) {
  if (directories_.empty()) directories_.emplace_back("/usr/lib/debug");
  std::error_code ignored;
  for (std::string& directory : directories_) {
    directory = std::filesystem::absolute(directory, ignored).string();
  }
}

Result<ksym::OpenedFile> BuildIdFiles::Open(const ksym::Mapping& mapping) {
  const MappedObject* module = index_.Find(mapping);
  if (module == nullptr) {
    return Fail(ksym::ErrorCode::kNotFound,
                mapping.path.str() + ": the capture has no build-id of it");
  }
  const std::string& id = module->build_id;
  const std::string below =
      "/.build-id/" + id.substr(0, 2) + '/' + id.substr(2);
  std::vector<std::string> paths;
  for (const std::string& directory : directories_) {
    paths.push_back(directory + below);
    paths.push_back(paths.back() + ".debug");
  }
  paths.push_back(module->path);
  for (const std::string& path : paths) {
    auto opened = ksym::OpenFileOfHost(path);
    if (opened && HasCodeOf(*opened, *module)) return opened;
  }
  return OpenStandIn(*module);
}

Result<ksym::ByteSource> BuildIdFiles::OpenDebugFile(const std::string& path) {
  if (path.starts_with(ksym::kBuildIdDirectory)) {
    const std::string below =
        "/.build-id/" + path.substr(ksym::kBuildIdDirectory.size());
    for (const std::string& directory : directories_) {
      auto opened = ksym::OpenFileOfHost(directory + below);
      if (!opened) continue;
      return ksym::ByteSource::OfFile(std::move(opened->fd), opened->size);
    }
  }
  return Fail(ksym::ErrorCode::kNotFound, path);
}

}  // namespace profd
