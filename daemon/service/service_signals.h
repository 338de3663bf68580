// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// The signals of the service, as what they ask for.
class ServiceSignals {
 public:
  // Blocks them for this thread; call before any other thread starts.
  static ksym::Result<ServiceSignals> Install();

  struct Asked {
    bool stop = false;       // SIGTERM, SIGINT
    bool reload = false;     // SIGHUP
    bool write_now = false;  // SIGUSR1
  };
  // Waits for one, at most `timeout`, or until `bell` is readable; several come
  // together. A bell of -1 never is.
  Asked Wait(std::chrono::nanoseconds timeout, int bell = -1) const;

 private:
  explicit ServiceSignals(ksym::UniqueFd fd) : fd_(std::move(fd)) {}

  ksym::UniqueFd fd_;
};

}  // namespace profd
