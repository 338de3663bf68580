// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// The two layouts of call-frame information: the debugger's (DWARF 5, 6.4.1)
// and the one that is loaded with the program (Linux Standard Base Core, 10.6).
enum class CallFrameFormat : uint8_t { kDebugFrame, kEhFrame };

// Larger sections are kLimit; that of libLLVM has 5 MiB, of browsers three
// times as much.
inline constexpr size_t kMaxCallFrameBytes = size_t{32} << 20;

// A section of call-frame information, unpacked.
struct CallFrameSection {
  CallFrameFormat format = CallFrameFormat::kEhFrame;
  // Where the first byte is loaded; pointers are relative to their own place.
  ElfAddress address;
  // The section's end is not known: an entry of length 0 is the last.
  bool ends_with_zero = false;
  std::vector<std::byte> bytes;
};

// The file's .eh_frame, by its section header or else by PT_GNU_EH_FRAME.
// Without bytes when there is none. kCorrupt, kLimit (kMaxCallFrameBytes), kIo.
Result<CallFrameSection> ReadEhFrame(const ByteSource& source,
                                     const ElfImage& image);

// The file's .debug_frame, perhaps compressed, in the same manner.
Result<CallFrameSection> ReadDebugFrame(const ByteSource& source,
                                        const ElfImage& image);

}  // namespace ksym
