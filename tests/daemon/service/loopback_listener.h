// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "ksym/base/unique_fd.h"

namespace profd {

// Listens at a free port of the loopback, for what a test has as a server.
class LoopbackListener {
 public:
  explicit LoopbackListener(int backlog)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&name), &size);
    port_ = ntohs(name.sin_port);
    EXPECT_EQ(::listen(fd_.get(), backlog), 0);
  }

  // "127.0.0.1:PORT".
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // The next connection; none after Stop().
  ksym::UniqueFd Accept() const {
    return ksym::UniqueFd(::accept(fd_.get(), nullptr, nullptr));
  }
  // Any thread.
  void Stop() const { ::shutdown(fd_.get(), SHUT_RDWR); }

 private:
  const ksym::UniqueFd fd_;
  uint16_t port_ = 0;
};

}  // namespace profd
