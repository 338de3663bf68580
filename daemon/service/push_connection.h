// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/service/push_target.h"
#include "ksym/base/result.h"

namespace profd {

// Posts to one receiver, a connection for each, and believes nothing that it
// answers: of that at most Settings::max_answer_bytes are read, its first line
// within the first kMaxLineBytes and a buffer, and all of it in time. Not
// thread-safe but for Stop().
class PushConnection {
 public:
  static constexpr size_t kMaxAnswerBytes = 64 << 10;
  static constexpr size_t kMaxLineBytes = 4 << 10;
  static constexpr size_t kMaxTextBytes = 200;

  struct Settings {
    std::string token = {};  // "Authorization: Bearer TOKEN"; empty: none
    std::string login = {};  // of HTTP's Basic scheme, "USER:PASSWORD"
    std::chrono::milliseconds connect_within{5'000};
    // From the connection to the last byte of the answer, with the handshake
    // of TLS.
    std::chrono::milliseconds answer_within{30'000};
    size_t max_answer_bytes = kMaxAnswerBytes;
    // Asked a few times per second while it waits, if there is one: whether to
    // give up.
    std::function<bool()> is_over = {};
  };
  static ksym::Result<PushConnection> Make(const PushUrl& url,
                                           const Settings& settings);
  PushConnection(PushConnection&&) noexcept;
  PushConnection& operator=(PushConnection&&) = delete;
  ~PushConnection();

  struct Message {
    std::string path;  // with the query
    std::string content_type;
    std::string body;
    std::string content_encoding = {};  // of the body; empty: none
    bool wants_answer = false;          // also where it was taken
  };
  struct Answer {
    int status = 0;
    std::string text;  // the first bytes of what it says, printable; unless 2xx
    std::string body;  // of 2xx, if it is wanted: as it came, maybe a part
    bool is_whole = false;  // nothing is missing at the body's end
  };
  // Blocks for as long as the settings say. kIo: no answer, and why.
  ksym::Result<Answer> Post(Message message);
  // From any thread: ends a Post().
  void Stop();

 private:
  class Impl;
  explicit PushConnection(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
