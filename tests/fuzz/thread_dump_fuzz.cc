// SPDX-License-Identifier: Apache-2.0
// A dump reads the arguments and the words of a wait, with which the input
// begins, and the text of /proc/PID/maps, which is the rest. A lock of one
// process is held by none of another's threads.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "daemon/dump/lock_claim.h"
#include "daemon/dump/lock_holders.h"
#include "daemon/dump/shared_memory.h"

namespace profd {
namespace {

constexpr uint32_t kPids = 3;

DumpedThread Thread(uint32_t pid, uint32_t tid) {
  DumpedThread thread;
  thread.pid = pid;
  thread.tid = pid * 10 + tid;
  thread.own_tid = tid;
  thread.reason = {.calls = WaitCalls::kX8664, .call = 202, .state = 1};
  return thread;
}

void Check(DumpedThread waiter) {
  const auto wait = FutexWaitOf(waiter);
  if (!wait) return;
  const auto claim = LockClaimOf(waiter, *wait);
  if (!claim) return;
  std::vector<DumpedThread> threads = {waiter};
  for (uint32_t pid = 1; pid <= kPids; ++pid) {
    threads.push_back(Thread(pid, claim->own_tid));
  }
  const std::vector<ClaimedLock> claims = {
      {.waiter = 0, .address = wait->address, .claim = *claim}};
  const auto holders = FindHolders(
      threads, claims,
      [](uint32_t pid, uint32_t, uint64_t) { return pid == kPids; });
  const auto holder = holders.front();
  if (!holder) return;
  const uint32_t pid = threads[*holder].pid;
  if (pid != waiter.pid && (!claim->is_shared || pid != kPids)) std::abort();
}

}  // namespace
}  // namespace profd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  profd::DumpedThread waiter = profd::Thread(1, 5);
  profd::LockWords words = {};
  if (size < sizeof(waiter.arguments) + sizeof(words)) return 0;
  std::memcpy(waiter.arguments.data(), data, sizeof(waiter.arguments));
  data += sizeof(waiter.arguments);
  std::memcpy(words.data(), data, sizeof(words));
  data += sizeof(words);
  size -= sizeof(waiter.arguments) + sizeof(words);
  waiter.lock_words = words;
  profd::Check(waiter);
  const std::string_view maps(reinterpret_cast<const char*>(data), size);
  const auto mappings = profd::ParseSharedMappings(maps);
  for (const profd::SharedMapping& mapping : mappings) {
    // A byte that a process maps it shares with itself.
    if (!profd::HasByteOf(mappings, mappings, mapping.start)) std::abort();
  }
  return 0;
}
