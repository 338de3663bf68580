// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace profd {

// A connection to a receiver as httplib reads and writes it: with bounds on
// what is read and until when.
class PushStream : public httplib::Stream {
 public:
  struct Bounds {
    size_t bytes = 0;       // that are read
    size_t line_bytes = 0;  // in which, and a buffer, the first line must end
    std::chrono::steady_clock::time_point deadline;
    // Asked a few times per second while it waits: whether to give up. May be
    // empty.
    std::function<bool()> is_over = {};
  };
  // The socket becomes non-blocking. `tls`: null for plain text. Both are
  // borrowed.
  PushStream(int fd, SSL* tls, const Bounds& bounds);
  using httplib::Stream::write;

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/,
                              int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/,
                             int& /*port*/) const override {}
  socket_t socket() const override { return fd_; }

 private:
  bool Fill();
  ssize_t ReadSome();
  ssize_t WriteSome(const char* from, size_t size);
  // Until the failed operation may be tried again; false: it may not.
  bool WaitToRetry(ssize_t result, short events);
  bool Wait(short events) const;

  const int fd_;
  SSL* const tls_;
  const Bounds bounds_;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t received_ = 0;
  bool line_ended_ = false;
};

}  // namespace profd
