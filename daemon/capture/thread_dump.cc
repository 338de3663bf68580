// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/thread_dump.h"

#include <algorithm>
#include <cstring>

namespace profd {

DumpedThread DumpedThreadOf(const dump_thread_record& record) {
  static_assert(std::tuple_size_v<LockWords> == DUMP_LOCK_WORDS);
  const auto has = [&](dump_flags flag) { return (record.flags & flag) != 0; };
  const profile_key& key = record.key;
  DumpedThread thread = {
      .pid = key.tgid,
      .tid = record.tid,
      .own_tid = record.own_tid,
      .comm = {key.comm, ::strnlen(key.comm, sizeof(key.comm))},
      .is_running = has(DUMP_RUNNING),
      .has_user_code = has(DUMP_USER),
      .reason = WaitReasonOf(
          {.kind = kWaitReason, .unit = record.calls, .value = record.reason}),
      .waited_ns = std::nullopt,
      .lock_words = std::nullopt};
  std::ranges::copy(record.arguments, thread.arguments.begin());
  if (has(DUMP_WAITED)) thread.waited_ns = record.waited_ns;
  if (has(DUMP_LOCK)) {
    std::ranges::copy(record.lock_words, thread.lock_words.emplace().begin());
  }
  return thread;
}

}  // namespace profd
