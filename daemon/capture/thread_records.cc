// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/thread_records.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "bpf/dump_abi.h"
#include "bpf/waiting_abi.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

using ksym::FailErrno;

// So much is read of the records of threads at once: more than the kernel has
// buffered for an iterator at a time, which is 32 KiB.
constexpr size_t kReadBytes = size_t{64} << 10;
// The kernel ends a read with EAGAIN where it came past a million threads
// without a record, and the next one goes on from there. It has no more than
// four million, so that more of them are something else.
constexpr int kMaxRetries = 16;

// How many bytes the record has that begins there, of which the first 64 are
// there; 0: none does.
size_t BytesOf(const std::byte* at) {
  const auto& record = *reinterpret_cast<const profile_record*>(at);
  switch (record.type) {
    case PROFILE_RECORD_THREAD:
      return sizeof(wait_thread_record);
    case PROFILE_RECORD_STACK:
      return PROFILE_STACK_RECORD_BYTES(
          size_t{reinterpret_cast<const profile_stack_record*>(at)->depth});
    case PROFILE_RECORD_PIECE:
      return PROFILE_PIECE_RECORD_BYTES(
          size_t{reinterpret_cast<const profile_piece_record*>(at)->bytes});
    case PROFILE_RECORD_ASLEEP:
      return sizeof(wait_asleep_record);
    case PROFILE_RECORD_DUMP:
      return sizeof(dump_thread_record);
    case PROFILE_RECORD_COPY:
      return sizeof(profile_copy_record);
    default:
      return 0;
  }
}

// Takes the whole records at the front; returns how many bytes they have.
// Behind bytes that are no record nothing tells where one begins: all are
// passed over.
size_t TakeRecords(std::span<const std::byte> bytes,
                   const Sampler::RecordTaker& take) {
  // The shortest one has a stack's head and one frame of two words.
  constexpr size_t kMin = PROFILE_STACK_RECORD_BYTES(2);
  size_t used = 0;
  while (bytes.size() - used >= kMin) {
    // Records have multiples of 8 bytes, and so has what is kept.
    const std::byte* const at = bytes.data() + used;
    const size_t size = BytesOf(at);
    if (size == 0) return bytes.size();
    if (bytes.size() - used < size) break;
    take(*reinterpret_cast<const profile_record*>(at), size);
    used += size;
  }
  return used;
}

}  // namespace

ksym::Status ReadThreadRecords(int program_fd,
                               const Sampler::RecordTaker& take) {
  const ksym::UniqueFd link(
      bpf_link_create(program_fd, 0, BPF_TRACE_ITER, nullptr));
  if (!link.valid()) return FailErrno(errno, "attaching to threads");
  const ksym::UniqueFd iterator(bpf_iter_create(link.get()));
  if (!iterator.valid()) return FailErrno(errno, "walking over threads");
  return TakeThreadRecords(
      [&](std::span<std::byte> out) {
        return ::read(iterator.get(), out.data(), out.size());
      },
      take);
}

ksym::Status TakeThreadRecords(const WalkReader& read,
                               const Sampler::RecordTaker& take) {
  std::vector<std::byte> bytes;
  for (int retries = 0;;) {
    const size_t kept = bytes.size();
    bytes.resize(kept + kReadBytes);
    const ssize_t got = read(std::span(bytes).subspan(kept));
    const bool goes_on = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (got < 0 && (!goes_on || ++retries > kMaxRetries)) {
      return FailErrno(errno, "reading threads");
    }
    bytes.resize(kept + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
    // The last record may be cut off by the read; its rest comes next.
    const size_t used = TakeRecords(bytes, take);
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(used));
  }
  return {};
}

}  // namespace profd
