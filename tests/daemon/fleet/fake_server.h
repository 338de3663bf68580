// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ksym/base/unique_fd.h"
#include "tests/daemon/service/loopback_listener.h"

namespace profd::fleet {

// A server at a free port of the loopback. For each connection it reads a
// request to the end of its body and sends what it is told to, byte by byte the
// same; one connection after the other.
class FakeServer {
 public:
  using Answer = std::function<std::string(const std::string& request)>;

  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~FakeServer() {
    is_over_ = true;
    listener_.Stop();
    thread_.join();
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const { return "http://" + listener_.address() + "/ksym"; }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // An answer with a body and its length.
  static std::string Ok(std::string_view body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + std::string(body);
  }
  // For an answer that never comes: until the server ends.
  void WaitForEnd() const {
    while (!is_over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

 private:
  void Serve() {
    for (;;) {
      const ksym::UniqueFd fd = listener_.Accept();
      if (!fd.valid()) return;
      const std::string request = Read(fd.get());
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      const std::string answer = answer_(request);
      (void)::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }
  static std::string Read(int fd) {
    std::string text;
    std::array<char, 4096> buffer = {};
    for (;;) {
      const size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos) {
        constexpr std::string_view kLength = "Content-Length: ";
        const size_t at = text.find(kLength);
        const size_t body =
            at == std::string::npos
                ? 0
                : std::strtoul(text.c_str() + at + kLength.size(), nullptr, 10);
        if (text.size() >= head + 4 + body) return text;
      }
      const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (size <= 0) return text;
      text.append(buffer.data(), static_cast<size_t>(size));
    }
  }

  const Answer answer_;
  const LoopbackListener listener_{8};
  std::atomic<bool> is_over_ = false;
  mutable std::mutex mutex_;  // of requests_
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace profd::fleet
