// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/tables.h"

namespace profd::clickhouse {

const std::array<std::string_view, 3> kCreateTables = {
    R"(CREATE TABLE IF NOT EXISTS samples (
  time DateTime('UTC'),
  hour DateTime('UTC'),
  service LowCardinality(String),
  host LowCardinality(String),
  run LowCardinality(String),
  kind LowCardinality(String),
  command LowCardinality(String),
  unit LowCardinality(String),
  namespace LowCardinality(String),
  pod LowCardinality(String),
  container LowCardinality(String),
  container_id LowCardinality(String),
  version LowCardinality(String),
  parked UInt8,
  stack UInt64,
  count UInt64,
  value UInt64
) ENGINE = ReplacingMergeTree()
PARTITION BY toDate(time)
PRIMARY KEY (service, hour, stack, time, host)
ORDER BY (service, hour, stack, time, host, kind, command, unit, namespace,
          pod, container, container_id, version, parked, run))",
    R"(CREATE TABLE IF NOT EXISTS stacks (
  day Date,
  stack UInt64,
  names Array(LowCardinality(String)),
  modules Array(LowCardinality(String)),
  kinds Array(UInt8)
) ENGINE = ReplacingMergeTree()
PARTITION BY day
PRIMARY KEY cityHash64(arraySlice(names, 1, 4))
ORDER BY (cityHash64(arraySlice(names, 1, 4)),
          cityHash64(arraySlice(names, 1, 8)),
          cityHash64(arraySlice(names, 1, 16)), stack)
SETTINGS index_granularity = 256)",
    R"(CREATE TABLE IF NOT EXISTS intervals (
  time DateTime('UTC'),
  host String,
  run String,
  attempt UInt64,
  duration_ns UInt64,
  cpus UInt32,
  kernel String,
  architecture String,
  version String,
  kinds Array(String),
  units Array(String),
  frequencies Array(UInt64),
  taken UInt64,
  lost UInt64,
  rows UInt32
) ENGINE = MergeTree()
PARTITION BY toDate(time)
ORDER BY (time, host, run))"};

const std::string_view kInsertIntervals =
    "INSERT INTO intervals (time, host, run, duration_ns, cpus, kernel, "
    "architecture, version, kinds, units, frequencies, taken, lost, rows, "
    "attempt) FORMAT RowBinary";
const std::string_view kInsertStacks =
    "INSERT INTO stacks (day, stack, names, modules, kinds) FORMAT RowBinary";
const std::string_view kInsertSamples =
    "INSERT INTO samples (time, hour, service, host, run, kind, command, unit, "
    "namespace, pod, container, container_id, version, parked, stack, count, "
    "value) FORMAT RowBinary";

}  // namespace profd::clickhouse
