// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/profile/profile.h"
#include "daemon/service/push_target.h"
#include "ksym/base/result.h"

namespace profd {

// A profile as it is sent, and what Pyroscope wants to know of it.
struct PushEntry {
  uint64_t begin_unix_ns = 0;
  uint64_t end_unix_ns = 0;
  uint64_t frequency_hz = 0;
  std::string hostname;
  std::string body;  // packed, in the form that the target's protocol wants
};

// What is made of a profile for receivers.
enum class PushForm : uint8_t { kPprof, kOtlp, kClickHouse };
PushForm FormOf(PushProtocol protocol);

// An entry as a file of the spool, and back; kCorrupt: it is none.
std::string EncodePushEntry(const PushEntry& entry);
ksym::Result<PushEntry> DecodePushEntry(std::string_view bytes);

// Sends profiles to one target. Not thread-safe but for Stop().
class PushClient {
 public:
  // kInvalid, or as reading the token's file fails.
  static ksym::Result<PushClient> Make(const PushTarget& target);
  PushClient(PushClient&&) noexcept;
  ~PushClient();

  enum class Outcome : uint8_t {
    kSent,
    kTryAgain,  // it, or the way there, does not work now
    kRejected,  // this profile will never be taken
  };
  // Blocks, for 35 s at the most: 5 for the connection and 30 for what follows;
  // where several requests are needed for each of them.
  // `why`: what is wrong, unless sent.
  Outcome Send(const PushEntry& entry, std::string& why);
  // From any thread: ends a Send() and those that come.
  void Stop();

 private:
  class Impl;
  explicit PushClient(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
