// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/clickhouse_sender.h"

#include <fmt/format.h>
#include <httplib.h>

#include <utility>
#include <vector>

#include "daemon/clickhouse/row_binary.h"
#include "daemon/clickhouse/tables.h"
#include "daemon/output/gzip.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using clickhouse::Batch;

std::string WithQuery(const std::string& path, const std::string& key,
                      std::string_view value) {
  return httplib::append_query_params(path, {{key, std::string(value)}});
}

}  // namespace

std::optional<ClickHouseSender::Failure> ClickHouseSender::Send(
    std::string_view packed_batch, PushConnection& connection,
    const std::atomic<bool>& stopped) {
  const auto batch = clickhouse::UnpackBatch(packed_batch);
  if (!batch) {
    return Failure{.is_of_batch = true, .why = batch.error().message()};
  }
  auto failure = SendBatch(*batch, {connection, stopped});
  if (failure) {
    // The tables may be gone, or with the server's machine what it had said
    // that it has.
    has_tables_ = false;
    sent_.Clear();
  }
  return failure;
}

std::optional<ClickHouseSender::Failure> ClickHouseSender::SendBatch(
    const Batch& batch, const Way& way) {
  // One who may not make tables can write into those that are there.
  std::optional<Failure> no_tables;
  if (!has_tables_) no_tables = CreateTables(way);
  if (no_tables && no_tables->status == 0) return no_tables;
  std::string interval = batch.interval;
  const uint64_t high = random_();
  ksym::AppendLittleEndian(high << 32 | random_(), interval);
  auto failure = Insert(clickhouse::kInsertIntervals, interval, way);
  if (!failure) failure = SendStacks(batch, way);
  if (!failure && !batch.samples.empty()) {
    failure = Insert(clickhouse::kInsertSamples, batch.samples, way);
  }
  if (failure && no_tables) {
    failure->why += "; before, making tables: " + no_tables->why;
  }
  if (!failure) has_tables_ = true;
  return failure;
}

std::optional<ClickHouseSender::Failure> ClickHouseSender::SendStacks(
    const Batch& batch, const Way& way) {
  std::string rows;
  std::vector<uint64_t> numbers;
  for (const Batch::Stack& stack : batch.stacks) {
    if (sent_.Has(batch.day, stack.number)) continue;
    rows += stack.row;
    numbers.push_back(stack.number);
  }
  if (rows.empty()) return std::nullopt;
  auto failure = Insert(clickhouse::kInsertStacks, rows, way);
  if (failure) return failure;
  for (const uint64_t number : numbers) sent_.Add(batch.day, number);
  return std::nullopt;
}

std::optional<ClickHouseSender::Failure> ClickHouseSender::CreateTables(
    const Way& way) {
  const std::string with_setting =
      WithQuery(path_, std::string(clickhouse::kCreateSetting), "1");
  for (const std::string_view query : clickhouse::kCreateTables) {
    PushConnection::Message message = {
        .path = with_setting,
        .content_type = "text/plain; charset=utf-8",
        .body = std::string(query),
        .wants_answer = true};
    auto failure = Post(message, way);
    if (failure && failure->status != 0) {
      // A later version may know the setting no more.
      message.path = path_;
      failure = Post(std::move(message), way);
    }
    if (failure) return failure;
  }
  return std::nullopt;
}

std::optional<ClickHouseSender::Failure> ClickHouseSender::Insert(
    std::string_view query, std::string_view rows, const Way& way) {
  return Post({.path = WithQuery(path_, "query", query),
               .content_type = "application/octet-stream",
               .body = Gzip(rows),
               .content_encoding = "gzip",
               .wants_answer = true},
              way);
}

std::optional<ClickHouseSender::Failure> ClickHouseSender::Post(
    PushConnection::Message message, const Way& way) {
  if (way.stopped) return Failure{.why = "the service ends"};
  const auto answer = way.connection.Post(std::move(message));
  if (!answer) return Failure{.why = answer.error().message()};
  if (answer->status < 200 || answer->status >= 300) {
    return Failure{
        .status = answer->status,
        .why = fmt::format("status {}: {}", answer->status, answer->text)};
  }
  // ClickHouse has nothing to say of what it took; whoever says something is
  // another server, or met an error after it had said 200.
  if (answer->body.empty()) return std::nullopt;
  const std::string_view text = answer->body;
  return Failure{
      .status = answer->status,
      .why = "is no answer of ClickHouse: " +
             ksym::Printable(text.substr(0, PushConnection::kMaxTextBytes))};
}

}  // namespace profd
