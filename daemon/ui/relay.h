// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// A request that goes on to the service.
struct RelayedRequest {
  std::string socket;  // the service's Unix socket
  std::string target;  // as the client wrote it: the path and what follows '?'
  int client = -1;     // takes the answer; borrowed
  int stop = -1;       // readable: give up; borrowed
};

// How long the service may take until its answer begins: it lets a query wait,
// and run, for half a minute.
inline constexpr std::chrono::seconds kRelayBeginsWithin{60};
// And from then on until the client has all of it.
inline constexpr std::chrono::seconds kRelayEndsWithin{60};

// Asks the service and hands its answer on as it comes, byte by byte the same,
// with its headers. An error: the client has got nothing yet, and the message
// says why in a sentence. Ends at once when `stop` is readable or the client
// goes away, which is none. Memory: one buffer of 64 KiB.
ksym::Status Relay(const RelayedRequest& request);

// Asks the service for a path and waits for the first line of the answer: its
// status. Fails where Relay() does; takes kRelayBeginsWithin at the most.
ksym::Result<int> AskStatus(const std::string& socket, std::string_view path);

}  // namespace profd
