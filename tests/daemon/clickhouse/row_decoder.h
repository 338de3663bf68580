// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/clickhouse/batch.h"

namespace profd::clickhouse {

// Rows as ClickHouse reads them: written from its documentation of RowBinary,
// with nothing of what writes them. A test fails where bytes are missing or
// left.

struct SampleRow {
  uint32_t time = 0;
  uint32_t hour = 0;
  // service, host, run, kind, command, unit, namespace, pod, container,
  // container_id, version
  std::vector<std::string> texts;
  uint8_t parked = 0;
  uint64_t stack = 0;
  uint64_t count = 0;
  uint64_t value = 0;
};
std::vector<SampleRow> DecodeSamples(std::string_view rows);

struct StackRow {
  uint16_t day = 0;
  uint64_t stack = 0;
  std::vector<std::string> names;
  std::vector<std::string> modules;
  std::vector<uint8_t> kinds;
};
StackRow DecodeStack(std::string_view row);

struct IntervalRow {
  uint32_t time = 0;
  std::string host;
  std::string run;
  uint64_t duration_ns = 0;
  uint32_t cpus = 0;
  std::string kernel;
  std::string architecture;
  std::string version;
  std::vector<std::string> kinds;
  std::vector<std::string> units;
  std::vector<uint64_t> frequencies;
  uint64_t taken = 0;
  uint64_t lost = 0;
  uint32_t rows = 0;
};
IntervalRow DecodeInterval(std::string_view row);

}  // namespace profd::clickhouse
