// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "daemon/ui/loopback.h"
#include "ksym/base/result.h"

namespace profd {

// A door of the loopback to the history's page and what it asks for, of a
// service at a Unix socket. A request must be a GET, must name an address or
// localhost as its Host, as other sites' pages cannot, and, but for the page's
// own files, which have no data, must have the token as its Authorization.
// Nothing else is let through. docs/security.md has the bounds.
class PageGate {
 public:
  // Requests that are answered at once; others get 503.
  static constexpr size_t kMaxClients = 8;

  struct Terms {
    std::string socket;  // the service's
    std::string token;   // not empty
  };

  // Takes requests in threads of its own from now on.
  static ksym::Result<std::unique_ptr<PageGate>> Open(
      LoopbackListeners listeners, Terms terms);
  // Cuts off what is being answered; within milliseconds.
  ~PageGate();

 private:
  class Impl;
  explicit PageGate(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
