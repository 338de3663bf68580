// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// Where profiles are sent; an element of "push" in the configuration.
struct PushTarget {
  // http or https; of Pyroscope if its path ends in "/ingest", of a collector
  // of OpenTelemetry with "otlp+" in front, of a database of ClickHouse with
  // "clickhouse+".
  std::string url = {};
  std::string name = "ksym-profiled";  // the application's, for Pyroscope
  // "Authorization: Bearer TOKEN"; of ClickHouse "USER:PASSWORD"; empty: none.
  std::string token_file = {};
  // The most that is sent of each service and kind; 0: all there are.
  uint64_t samples_per_hour = 0;

  friend bool operator==(const PushTarget&, const PushTarget&) = default;
};

// How a receiver takes profiles.
enum class PushProtocol : uint8_t {
  kPprof,       // the body of a POST
  kPyroscope,   // a form with pprof
  kOtlp,        // OTLP/HTTP with binary protobuf, of v1development
  kClickHouse,  // rows of its tables; docs/fleet.md
};

struct PushUrl {
  bool is_https = false;
  std::string host;  // a name or an address; of IPv6 without brackets
  uint16_t port = 0;
  std::string path;  // with the query; at least "/"
  PushProtocol protocol = PushProtocol::kPprof;
};

// kInvalid: no URL, not of http or https, of no server that there can be, or
// with a user's name in it; of ClickHouse without a plain name of a database.
ksym::Result<PushUrl> ParsePushUrl(std::string_view url);

// A name for the target's directory that no other URL has, but for those made
// to collide.
std::string DirectoryOf(const PushTarget& target);

}  // namespace profd
