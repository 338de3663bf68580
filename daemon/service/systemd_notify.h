// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Tells the service manager how the service is: the protocol of sd_notify(3),
// a datagram of NAME=VALUE lines to the socket that $NOTIFY_SOCKET names. Our
// own, because these are few lines and libsystemd would be one more library
// in a program that has privileges. Without the variable it does nothing.
// Movable; one thread at a time.
class SystemdNotify {
 public:
  // From the environment, which is then emptied of it, so that no child can
  // speak for the service. kInvalid: the address cannot be used.
  static ksym::Result<SystemdNotify> FromEnvironment();
  // As if the environment had these; empty: not set.
  static ksym::Result<SystemdNotify> To(std::string_view address,
                                        std::string_view watchdog_usec);

  bool enabled() const { return socket_.valid(); }
  // After how long without a sign of life the manager kills us; none: never.
  std::optional<std::chrono::microseconds> watchdog() const {
    return watchdog_;
  }

  // Sends "READY=1" or several such lines. Never blocks; what the manager has
  // no room for is dropped.
  void Send(std::string_view lines) const;

 private:
  ksym::UniqueFd socket_;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace profd
