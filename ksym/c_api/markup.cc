// SPDX-License-Identifier: Apache-2.0
// Builders of markup elements.

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/c_api/call.h"
#include "ksym/elf/elf_image.h"
#include "ksym/ksym.h"
#include "ksym/markup/markup_context.h"
#include "ksym/markup/markup_fields.h"
#include "ksym/markup/markup_writer.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace {

using ksym::c_api::Failed;
using ksym::c_api::Guarded;
using ksym::c_api::TakeStruct;

// As snprintf. `append` makes the element; false: an argument makes no sense.
template <typename Append>
size_t WriteElement(char* out, size_t size, const Append& append) noexcept {
  size_t length = 0;
  const ksym_status status = Guarded([&] {
    std::string element;
    if ((out == nullptr && size > 0) || !append(element)) {
      return Failed(KSYM_INVALID, "markup: an argument makes no sense");
    }
    length = element.size();
    if (size > 0) {
      const size_t copied = std::min(length, size - 1);
      std::memcpy(out, element.data(), copied);
      out[copied] = '\0';
    }
    return KSYM_OK;
  });
  return status == KSYM_OK ? length : 0;
}

ksym::MarkupCode KindOf(uint32_t flags) {
  return (flags & KSYM_RETURN_ADDRESS) != 0 ? ksym::MarkupCode::kReturnAddress
                                            : ksym::MarkupCode::kPrecise;
}

bool HasKnownFlags(uint32_t flags) {
  return (flags & ~KSYM_RETURN_ADDRESS) == 0;
}

// The address of a mapping's first byte as the file's headers count. It may
// lie before its segment: mappings begin at pages.
const ksym::ElfSegment* FindSegment(const ksym::ElfImage& elf,
                                    const ksym::Mapping& mapping) {
  const uint64_t begin = mapping.file_offset.value;
  const uint64_t end = begin + (mapping.end - mapping.start);
  for (const ksym::ElfSegment& segment : elf.segments()) {
    const uint64_t at = segment.file_offset.value;
    if (segment.executable && at < end && begin < at + segment.file_size) {
      return &segment;
    }
  }
  return nullptr;
}

// Writes a process's mappings, a file's one after the other.
class ContextWriter {
 public:
  ContextWriter(uint32_t pid, ksym_write write, void* context)
      : pid_(pid), write_(write), context_(context) {}

  void Write(const std::vector<ksym::Mapping>& mappings) {
    ksym::AppendMarkupReset(text_);
    text_ += '\n';
    std::vector<const ksym::Mapping*> order;
    for (const ksym::Mapping& mapping : mappings) {
      // Only a file can be opened for its build-id.
      if (mapping.inode != 0) order.push_back(&mapping);
    }
    std::ranges::stable_sort(order, {}, [](const ksym::Mapping* mapping) {
      return std::pair(mapping->inode, std::string_view(mapping->path));
    });
    const ksym::Mapping* last = nullptr;
    ksym::Result<ksym::ElfImage> elf =
        ksym::Fail(ksym::ErrorCode::kNotFound, "");
    for (const ksym::Mapping* mapping : order) {
      if (last == nullptr || !IsSameFile(*last, *mapping)) {
        elf = Open(*mapping);
        AddModule(elf, *mapping);
      }
      last = mapping;
      if (elf && !elf->build_id().empty()) AddMmap(*elf, *mapping);
    }
    // In one piece, so that lines which others write to the same log do not
    // come between a module and its mmaps.
    write_(context_, text_.data(), text_.size());
  }

  size_t skipped() const { return skipped_; }

 private:
  static bool IsSameFile(const ksym::Mapping& a, const ksym::Mapping& b) {
    return a.inode == b.inode && a.path == b.path &&
           a.device_major == b.device_major && a.device_minor == b.device_minor;
  }

  ksym::Result<ksym::ElfImage> Open(const ksym::Mapping& mapping) const {
    auto opened = ksym::OpenMappedFile(pid_, mapping);
    if (!opened) return ksym::Fail(std::move(opened.error()));
    return ksym::ElfImage::Parse(
        ksym::ByteSource::OfFile(std::move(opened->fd), opened->size));
  }

  void AddModule(const ksym::Result<ksym::ElfImage>& elf,
                 const ksym::Mapping& mapping) {
    if (!elf || elf->build_id().empty()) {
      ++skipped_;
      return;
    }
    module_ = {.id = next_id_++,
               .name = mapping.path,
               .build_id = ksym::ToHex(elf->build_id())};
    ksym::AppendMarkupModule(module_, text_);
    text_ += '\n';
  }

  void AddMmap(const ksym::ElfImage& elf, const ksym::Mapping& mapping) {
    const ksym::ElfSegment* segment = FindSegment(elf, mapping);
    if (segment == nullptr) return;
    // Where the segment begins before the mapping this wraps, and the
    // difference below comes out right all the same.
    const uint64_t before =
        segment->file_offset.value - mapping.file_offset.value;
    ksym::AppendMarkupMmap({.address = mapping.start,
                            .size = mapping.end - mapping.start,
                            .module = &module_,
                            .mode = "rx",
                            .module_address = segment->address - before},
                           text_);
    text_ += '\n';
  }

  const uint32_t pid_;
  const ksym_write write_;
  void* const context_;
  std::string text_;
  ksym::MarkupModule module_;
  uint64_t next_id_ = 0;
  size_t skipped_ = 0;
};

}  // namespace

extern "C" {

// An element's fields are parameters. NOLINTBEGIN(readability-function-size)

size_t ksym_markup_reset(char* out, size_t size) {
  return WriteElement(out, size, [](std::string& element) {
    ksym::AppendMarkupReset(element);
    return true;
  });
}

size_t ksym_markup_module(char* out, size_t size, uint64_t id, const char* name,
                          const char* build_id) {
  return WriteElement(out, size, [&](std::string& element) {
    if (name == nullptr || build_id == nullptr ||
        !ksym::ParseMarkupBytes(build_id)) {
      return false;
    }
    ksym::AppendMarkupModule({.id = id, .name = name, .build_id = build_id},
                             element);
    return true;
  });
}

size_t ksym_markup_mmap(char* out, size_t size, const ksym_mmap* mmap) {
  return WriteElement(out, size, [&](std::string& element) {
    ksym_mmap taken = {};
    if (TakeStruct(mmap, sizeof(ksym_mmap), "ksym_mmap", taken) != KSYM_OK ||
        taken.mode == nullptr) {
      return false;
    }
    const auto mode = ksym::ParseMarkupMode(taken.mode);
    if (!mode) return false;
    ksym::MarkupModule module;
    module.id = taken.module_id;
    ksym::AppendMarkupMmap({.address = {taken.address},
                            .size = taken.length,
                            .module = &module,
                            .mode = *mode,
                            .module_address = {taken.module_address}},
                           element);
    return true;
  });
}

size_t ksym_markup_frame(char* out, size_t size, uint64_t number,
                         uint64_t address, uint32_t flags) {
  return WriteElement(out, size, [=](std::string& element) {
    ksym::AppendMarkupFrame(number, {address}, KindOf(flags), element);
    return HasKnownFlags(flags);
  });
}

size_t ksym_markup_code(char* out, size_t size, uint64_t address,
                        uint32_t flags) {
  return WriteElement(out, size, [=](std::string& element) {
    ksym::AppendMarkupCode({address}, KindOf(flags), element);
    return HasKnownFlags(flags);
  });
}

size_t ksym_markup_data(char* out, size_t size, uint64_t address) {
  return WriteElement(out, size, [=](std::string& element) {
    ksym::AppendMarkupData({address}, element);
    return true;
  });
}

size_t ksym_markup_symbol(char* out, size_t size, const char* linkage_name) {
  return WriteElement(out, size, [=](std::string& element) {
    if (linkage_name == nullptr) return false;
    ksym::AppendMarkupSymbol(linkage_name, element);
    return true;
  });
}

ksym_status ksym_markup_process(uint32_t pid, ksym_write write, void* context,
                                size_t* skipped) {
  return Guarded([&] {
    if (write == nullptr) {
      return Failed(KSYM_INVALID, "ksym_markup_process: write is null");
    }
    const auto mappings = ksym::ReadMaps(pid);
    if (!mappings) return Failed(mappings.error());
    ContextWriter writer(pid, write, context);
    writer.Write(*mappings);
    if (skipped != nullptr) *skipped = writer.skipped();
    return KSYM_OK;
  });
}

// NOLINTEND(readability-function-size)

}  // extern "C"
