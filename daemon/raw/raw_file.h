// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/profile/mapped_object.h"
#include "daemon/profile/parked.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/profile/thread_sums.h"
#include "ksym/base/result.h"

namespace profd {

// Why a capture carries no kernel symbol table.
enum class KernelSymbolsState : uint8_t {
  kPresent,
  kNotWanted,     // user stacks only, no kernel address to name
  kNoPermission,  // the kernel hides its addresses from this user
  kUnreadable,    // the table could not be read or understood
  kNotInTime,     // reading it was given up, as the capture was to end
};

// A capture with all that is needed to name its addresses later, on this
// machine or another one: the file that --raw writes and --replay reads.
struct RawCapture {
  RawProfile profile;
  // The kernel's symbol table in a form that only its own module knows.
  std::vector<std::byte> kernel_symbols;
  KernelSymbolsState kernel_symbols_state = KernelSymbolsState::kPresent;
  // The ELF image of the vdso; empty: it could not be read.
  std::string vdso_image;
  // The files that were mapped, as far as they have build-ids; and the kernel's
  // text and modules. Empty in files of older programs.
  std::vector<MappedObject> modules;
  std::vector<KernelPart> kernel_parts;
  // Lives of the threads whose waits were sampled, in no order.
  std::vector<ThreadLife> thread_lives;
  // Their time by the kernel's own sums; captures of older programs have none.
  ThreadSums thread_sums;
};

// Puts the capture's bytes into `out`, in the format of docs/formats.md:
// protobuf between a header and a CRC. The same capture gives the same bytes,
// whatever the order of its samples. Fails with kLimit when one blob is
// 4 GiB or more, and with kInvalid when a stack has the id of a state or kinds
// are more than kMaxSampleKinds.
[[nodiscard]] ksym::Status WriteRawCapture(const RawCapture& capture,
                                           std::string& out);

// Reads what WriteRawCapture wrote; the bytes may come from anyone. Memory is
// at most about 50 times the file and 256 MiB of paths. kCorrupt for bytes
// that are no raw capture, with the offset where that shows; kUnsupported for
// a later version; kLimit when the paths are longer than that. The samples
// come back sorted, and of an image the key decides its id.
// The bytes stay in memory as long as the profile's stacks, which lie in them.
[[nodiscard]] ksym::Result<RawCapture> ReadRawCapture(std::string file);

}  // namespace profd
