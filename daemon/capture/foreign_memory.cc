// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/foreign_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/base/own_priority.h"

namespace profd {
namespace {

// Memory may be readable up to the end of a page and not behind it.
constexpr uint64_t kPageBytes = 4096;
// A walk reads stacks one after the other, in 10 us each.
constexpr PriorityAllowance kReaderAllowance = {
    .at_once = std::chrono::milliseconds(100),
    .per_second = std::chrono::milliseconds(50)};

size_t ReadNow(uint32_t tid, uint64_t address, std::span<std::byte> out) {
  std::vector<iovec> remote;
  for (size_t done = 0; done < out.size();) {
    const uint64_t at = address + done;
    const size_t bytes =
        std::min<uint64_t>(kPageBytes - at % kPageBytes, out.size() - done);
    remote.push_back({.iov_base = reinterpret_cast<void*>(at),  // NOLINT
                      .iov_len = bytes});
    done += bytes;
  }
  const iovec local = {.iov_base = out.data(), .iov_len = out.size()};
  const ssize_t got = ::process_vm_readv(static_cast<pid_t>(tid), &local, 1,
                                         remote.data(), remote.size(), 0);
  return static_cast<size_t>(std::max<ssize_t>(got, 0));
}

}  // namespace

size_t ThreadMemory::ReadSome(ksym::Address address,
                              std::span<std::byte> out) const {
  // What a read costs besides its bytes.
  constexpr size_t kLeastBytes = 64;
  const size_t cost = std::max(out.size(), kLeastBytes);
  // From then on nothing, so that no part of something is taken for all.
  if (is_used_up_ || cost > bytes_left_) {
    is_used_up_ = true;
    return 0;
  }
  bytes_left_ -= cost;
  return ReadNow(tid_, address.value, out);
}

ForeignMemory::ForeignMemory()
    : thread_({.patience = kPatience,
               .max_left_behind = kMaxLeftBehind,
               .allowance = kReaderAllowance}) {}

size_t ForeignMemory::Read(uint32_t tid, uint64_t address,
                           std::span<std::byte> out) {
  // The caller's buffer may be gone by the time that a late answer comes.
  struct Answer {
    std::vector<std::byte> bytes;
    size_t got = 0;
  };
  auto answer = std::make_shared<Answer>();
  answer->bytes.resize(out.size());
  if (!Run([=] { answer->got = ReadNow(tid, address, answer->bytes); })) {
    return 0;
  }
  std::copy_n(answer->bytes.begin(), answer->got, out.begin());
  return answer->got;
}

}  // namespace profd
