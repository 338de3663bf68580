// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/service/push_target.h"
#include "ksym/base/result.h"

namespace profd::fleet {

// What a question may take.
struct AskBounds {
  std::chrono::steady_clock::time_point deadline = {};
  // Bytes of the answer.
  size_t max_bytes = 0;
  // Asked a few times per second: whether nobody waits any more.
  std::function<bool()> is_over = [] { return false; };
};

// Asks a ClickHouse server, of version 18.16 or later, by HTTP. Believes
// nothing that it answers. Thread-safe: each question has a connection of its
// own.
class ClickHouse {
 public:
  struct Settings {
    // "http://HOST:PORT/DATABASE", or with https.
    std::string url = {};
    std::string user = {};      // empty: the server's default one
    std::string password = {};  // only with a user
  };

  // kInvalid: the URL is none, or its path is not the name of a database.
  static ksym::Result<ClickHouse> Make(Settings settings);

  // The rows of a SELECT, in RowBinary: all of them. The server is told to
  // change nothing for it. kLimit: they would be too many, or come too late;
  // kNotFound: the database or a table is not there; kIo: the server is not
  // reached, or fails, and why.
  ksym::Result<std::string> Ask(std::string_view select,
                                const AskBounds& bounds) const;

 private:
  ClickHouse(PushUrl url, Settings settings)
      : url_(std::move(url)), settings_(std::move(settings)) {}

  std::string PathOf(std::chrono::milliseconds left, size_t max_bytes) const;

  PushUrl url_;  // whose path is of no meaning
  Settings settings_;
  std::string database_;
};

}  // namespace profd::fleet
