// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/ring_reader.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

// So much is mapped at once; a longer record has a window of its own, for that
// moment.
constexpr uint64_t kWindowBytes = 128 << 10;
// A record is its length, which has two flags, a word that is the kernel's,
// and the bytes, padded to 8.
constexpr uint32_t kFlags = BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT;

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

ksym::Result<void*> Map(int map, uint64_t offset, size_t bytes, int access) {
  void* memory = ::mmap(nullptr, bytes, access, MAP_SHARED, map,
                        static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return FailErrno(errno, "mapping the ring buffer");
  return memory;
}

}  // namespace

ksym::Result<RingReader> RingReader::Open(int map, size_t bytes) {
  RingReader reader(map, bytes);
  const size_t page = PageBytes();
  // The kernel lets nobody write to any page but this one
  // (kernel/bpf/ringbuf.c).
  auto consumed = Map(map, 0, page, PROT_READ | PROT_WRITE);
  if (!consumed) return Fail(std::move(consumed.error()));
  reader.consumed_ = static_cast<uint64_t*>(*consumed);
  auto produced = Map(map, page, page, PROT_READ);
  if (!produced) return Fail(std::move(produced.error()));
  reader.produced_ = static_cast<const uint64_t*>(*produced);
  return reader;
}

RingReader::RingReader(RingReader&& other) noexcept
    : map_(other.map_),
      bytes_(other.bytes_),
      consumed_(std::exchange(other.consumed_, nullptr)),
      produced_(std::exchange(other.produced_, nullptr)),
      window_(std::exchange(other.window_, {})) {}

RingReader& RingReader::operator=(RingReader&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(bytes_, other.bytes_);
  std::swap(consumed_, other.consumed_);
  std::swap(produced_, other.produced_);
  std::swap(window_, other.window_);
  return *this;
}

RingReader::~RingReader() {
  CloseWindow();
  if (consumed_ != nullptr) ::munmap(consumed_, PageBytes());
  if (produced_ != nullptr) {
    ::munmap(const_cast<uint64_t*>(produced_), PageBytes());
  }
}

void RingReader::CloseWindow() {
  if (window_.memory != nullptr) ::munmap(window_.memory, window_.size);
  window_ = {};
}

// The bytes from `position` on. Where they have to be mapped, the bytes that
// come next are as well. The kernel has the ring twice in a row, so that no
// record is in two places. Null: it cannot be mapped.
const std::byte* RingReader::At(uint64_t position, uint64_t size) {
  if (position < window_.begin ||
      position + size > window_.begin + window_.size) {
    CloseWindow();
    const size_t page = PageBytes();
    const uint64_t begin = position / page * page;
    const uint64_t end = std::max(
        position + size, begin + std::min<uint64_t>(kWindowBytes, bytes_));
    const uint64_t bytes = (end - begin + page - 1) / page * page;
    const auto memory =
        Map(map_, 2 * page + (begin & (bytes_ - 1)), bytes, PROT_READ);
    if (!memory) return nullptr;
    window_ = {.memory = static_cast<std::byte*>(*memory),
               .begin = begin,
               .size = bytes};
  }
  return window_.memory + (position - window_.begin);
}

void RingReader::Consume(const Handler& handler) {
  uint64_t position = *consumed_;
  const uint64_t until = position + bytes_;
  while (position < until) {
    // Pairs with the release with which the kernel reserves a record.
    const uint64_t end = __atomic_load_n(produced_, __ATOMIC_ACQUIRE);
    if (position >= end) break;
    const std::byte* record = At(position, BPF_RINGBUF_HDR_SZ);
    if (record == nullptr) break;
    // Pairs with the exchange in bpf_ringbuf_commit().
    const uint32_t header = __atomic_load_n(
        reinterpret_cast<const uint32_t*>(record), __ATOMIC_ACQUIRE);
    // It holds up those behind it, which are to be given in order: all come
    // with the next call.
    if ((header & BPF_RINGBUF_BUSY_BIT) != 0) break;
    const uint64_t size = header & ~kFlags;
    record = At(position, BPF_RINGBUF_HDR_SZ + size);
    if (record == nullptr) break;
    if ((header & BPF_RINGBUF_DISCARD_BIT) == 0) {
      handler({record + BPF_RINGBUF_HDR_SZ, size});
    }
    position += BPF_RINGBUF_HDR_SZ + (size + 7) / 8 * 8;
    // For each record, so that the kernel has its room while the next is read.
    // Pairs with the acquire in __bpf_ringbuf_reserve().
    __atomic_store_n(consumed_, position, __ATOMIC_RELEASE);
  }
  if (window_.size > kWindowBytes) CloseWindow();
}

void RingReader::Skip() {
  __atomic_store_n(consumed_, __atomic_load_n(produced_, __ATOMIC_ACQUIRE),
                   __ATOMIC_RELEASE);
}

}  // namespace profd
