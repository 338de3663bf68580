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

// How long a question may take, and how much its answer.
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
    // "http://HOST:PORT/DATABASE", or with https; "clickhouse+" may be in
    // front, as a service has it that pushes there.
    std::string url = {};
    std::string login = {};  // "USER:PASSWORD"; empty: the default user's
  };

  // kInvalid: the URL is none, or its path is not the name of a database.
  static ksym::Result<ClickHouse> Make(const Settings& settings);

  // The rows of a SELECT, in RowBinary: all of them. The server is told to
  // change nothing for it. kLimit: they would be too many, or come too late;
  // kNotFound: the database or a table is not there; kIo: the server is not
  // reached, or fails, and why.
  ksym::Result<std::string> Ask(std::string_view select,
                                const AskBounds& bounds) const;

 private:
  ClickHouse(PushUrl url, std::string login)
      : url_(std::move(url)), login_(std::move(login)) {}

  std::string PathOf(std::chrono::milliseconds left, size_t max_bytes) const;

  PushUrl url_;  // whose path names the database
  std::string login_;
};

}  // namespace profd::fleet
