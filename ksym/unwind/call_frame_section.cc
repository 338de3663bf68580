// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/call_frame_section.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/unwind/encoded_pointer.h"

namespace ksym {
namespace {

Result<CallFrameSection> ReadWhole(const ByteSource& source,
                                   const ElfImage& image,
                                   const ElfSection& section) {
  const auto bytes = SectionBytes::Open(source, image, section);
  if (!bytes) return Fail(bytes.error());
  if (bytes->size() > kMaxCallFrameBytes) {
    return Fail(ErrorCode::kLimit, std::to_string(bytes->size()) +
                                       " bytes are more than " +
                                       std::to_string(kMaxCallFrameBytes));
  }
  CallFrameSection frames;
  frames.address = section.address;
  frames.bytes.resize(static_cast<size_t>(bytes->size()));
  const auto read = bytes->ReadAt(0, frames.bytes);
  if (!read) return Fail(read.error());
  return frames;
}

// The address of .eh_frame from what PT_GNU_EH_FRAME points to (Linux Standard
// Base Core, 10.6.2): a version, three encodings, and the pointer.
std::optional<uint64_t> FindEhFrame(const ByteSource& source,
                                    const ElfSegment& header) {
  constexpr size_t kHeaderBytes = 16;
  constexpr size_t kPointerAt = 4;
  std::array<std::byte, kHeaderBytes> bytes = {};
  const auto got = source.ReadSomeAt(header.file_offset.value, bytes);
  if (!got) return std::nullopt;
  const std::span<const std::byte> fields(bytes.data(), *got);
  ByteReader in(fields);
  if (in.Read<uint8_t>() != 1) return std::nullopt;
  const PointerEncoding encoding(in.Read<uint8_t>());
  in.Read<uint16_t>();  // of the table behind
  return encoding.Read(in, header.address.value + kPointerAt);
}

// What follows the address in its segment: more than .eh_frame, whose end only
// the sections know.
Result<CallFrameSection> ReadByHeader(const ByteSource& source,
                                      const ElfImage& image) {
  const auto& header = image.eh_frame_header();
  if (!header) return CallFrameSection();
  const auto address = FindEhFrame(source, *header);
  if (!address) {
    return Fail(ErrorCode::kCorrupt,
                "PT_GNU_EH_FRAME at offset " +
                    std::to_string(header->file_offset.value) +
                    " is not a header of .eh_frame");
  }
  for (const ElfSegment& segment : image.segments()) {
    const uint64_t distance = *address - segment.address.value;
    if (distance >= segment.file_size) continue;
    CallFrameSection frames;
    frames.address = {*address};
    frames.ends_with_zero = true;
    frames.bytes.resize(static_cast<size_t>(std::min<uint64_t>(
        {segment.file_size - distance, kMaxCallFrameBytes, source.size()})));
    const auto read =
        source.ReadSomeAt(segment.file_offset.value + distance, frames.bytes);
    if (!read) return Fail(read.error());
    frames.bytes.resize(*read);
    return frames;
  }
  return Fail(ErrorCode::kCorrupt, "PT_GNU_EH_FRAME leads out of the file");
}

Result<CallFrameSection> ReadNamed(const ByteSource& source,
                                   const ElfImage& image,
                                   std::string_view name) {
  const ElfSection* section = image.FindSection(name);
  if (section == nullptr || section->type == SHT_NOBITS)
    return CallFrameSection();
  auto frames = ReadWhole(source, image, *section);
  if (!frames) return Fail(Error(frames.error()).WithContext(name));
  return frames;
}

}  // namespace

Result<CallFrameSection> ReadEhFrame(const ByteSource& source,
                                     const ElfImage& image) {
  auto frames = ReadNamed(source, image, ".eh_frame");
  if (!frames || !frames->bytes.empty()) return frames;
  return ReadByHeader(source, image);
}

Result<CallFrameSection> ReadDebugFrame(const ByteSource& source,
                                        const ElfImage& image) {
  auto frames = ReadNamed(source, image, ".debug_frame");
  if (frames) frames->format = CallFrameFormat::kDebugFrame;
  return frames;
}

}  // namespace ksym
