// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace profd {

// What httplib reads a request from and writes its answer to: a request whose
// head has arrived, on a socket that takes the answer and is borrowed. Only the
// first line, Host and Authorization are read: there are no ranges, no
// compression and no bodies. One thread.
class HttpRequestStream : public httplib::Stream {
 public:
  // How long the client may take for the answer, from its first byte on.
  static constexpr std::chrono::seconds kAnswerWithin{30};

  HttpRequestStream(int fd, std::string_view head);
  using httplib::Stream::write;

  // What is written from now on goes nowhere: the answer was given already.
  void Mute() { is_muted_ = true; }

  // What httplib calls for connections that go on; ours do not.
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/,
                              int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/,
                             int& /*port*/) const override {}
  // Not ours: httplib refuses numbers that select(2) cannot have, and a
  // symbolizer holds thousands of files open.
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  using Clock = std::chrono::steady_clock;

  const int fd_;
  const std::string head_;
  size_t read_ = 0;
  bool is_muted_ = false;
  Clock::time_point deadline_;  // from the answer's first byte on
};

}  // namespace profd
