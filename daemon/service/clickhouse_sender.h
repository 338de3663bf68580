// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "daemon/clickhouse/batch.h"
#include "daemon/clickhouse/sent_stacks.h"
#include "daemon/service/push_connection.h"

namespace profd {

// Writes batches into the tables of one ClickHouse server (docs/fleet.md), in
// an order in which nothing is lost or counted twice whenever it ends: that the
// interval is sent, stacks that the server may not have, samples. Not
// thread-safe.
class ClickHouseSender {
 public:
  // `path`: what is posted to, with the database in its query.
  explicit ClickHouseSender(std::string path) : path_(std::move(path)) {}

  struct Failure {
    bool is_of_batch = false;  // it is none, and will never be taken
    int status = 0;            // of the answer; 0: there was none
    std::string why;
  };
  // Nothing: the server says that it has all of a packed batch. It ends early
  // when it is stopped.
  std::optional<Failure> Send(std::string_view packed_batch,
                              PushConnection& connection,
                              const std::atomic<bool>& stopped);

 private:
  // Posts for one batch.
  struct Way {
    PushConnection& connection;
    const std::atomic<bool>& stopped;
  };
  std::optional<Failure> SendBatch(const clickhouse::Batch& batch,
                                   const Way& way);
  std::optional<Failure> SendStacks(const clickhouse::Batch& batch,
                                    const Way& way);
  std::optional<Failure> CreateTables(const Way& way);
  std::optional<Failure> Insert(std::string_view query, std::string_view rows,
                                const Way& way);
  std::optional<Failure> Post(PushConnection::Message message, const Way& way);

  const std::string path_;
  std::random_device random_;
  clickhouse::SentStacks sent_;
  bool has_tables_ = false;
};

}  // namespace profd
