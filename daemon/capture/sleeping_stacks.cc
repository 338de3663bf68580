// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sleeping_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "bpf/waiting_abi.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// As much of a stack as the programs read.
constexpr uint64_t kMaxStackBytes = 20 << 10;

}  // namespace

SleepingStacks::SleepingStacks(ForeignMemory& memory,
                               const Sampler::RecordTaker& take)
    : memory_(memory),
      take_(take),
      piece_(std::make_unique<profile_piece_record>()) {}

void SleepingStacks::Take(const profile_record& record, size_t bytes) {
  if (record.type == PROFILE_RECORD_THREAD &&
      bytes >= sizeof(wait_thread_record)) {
    thread_ = reinterpret_cast<const wait_thread_record&>(record);
  } else if (record.type == PROFILE_RECORD_COPY &&
             bytes >= sizeof(profile_copy_record)) {
    AddStack(reinterpret_cast<const profile_copy_record&>(record));
    return;
  }
  take_(record, bytes);
}

void SleepingStacks::AddStack(const profile_copy_record& record) {
  profile_copy_record head = record;
  std::array<std::byte, kMaxStackBytes> stack;
  const auto wanted = std::span(stack).first(
      std::min<uint64_t>(head.end - head.address, stack.size()));
  head.end = head.address + wanted.size();
  // No part of a second stack is copied.
  head.home_address = 0;
  head.home_end = 0;
  size_t got = memory_.Read(head.tid, head.address, wanted);
  // A thread that went on changed its stack while it was read.
  if (!SleepsYet(head.tid)) got = 0;
  if (got != 0) head.end = head.address + got;
  head.bytes = static_cast<uint32_t>(got);
  piece_->header = head.header;
  piece_->header.type = PROFILE_RECORD_PIECE;
  piece_->copy = head.copy;
  for (size_t done = 0; done < got; done += piece_->bytes) {
    const auto part = std::span(stack).first(got).subspan(done).first(
        std::min(sizeof(piece_->stack), got - done));
    piece_->address = head.address + done;
    piece_->bytes = static_cast<uint32_t>(part.size());
    std::ranges::copy(std::as_bytes(part),
                      reinterpret_cast<std::byte*>(piece_->stack));
    take_(piece_->header, PROFILE_PIECE_RECORD_BYTES(part.size()));
  }
  take_(head.header, sizeof(head));
}

bool SleepingStacks::SleepsYet(uint32_t tid) const {
  // How long it ran, how long it was runnable, and how often it was chosen to
  // run. The first grows at the next tick only: it tells that this is still the
  // same thread. The last grows before it runs.
  const auto text = ksym::ReadFile(fmt::format("/proc/{}/schedstat", tid), 128);
  if (!text) return false;
  std::string_view rest = *text;
  const auto running_ns = ksym::ParseUnsigned(ksym::TakeField(rest, ' '), 10);
  ksym::TakeField(rest, ' ');
  const auto runs = ksym::ParseUnsigned(ksym::TakeField(rest, '\n'), 10);
  return running_ns == thread_.running_ns && runs &&
         static_cast<uint32_t>(*runs) == thread_.runs;
}

}  // namespace profd
