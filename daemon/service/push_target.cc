// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/push_target.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr size_t kMaxUrlBytes = 4096;
constexpr size_t kMaxHostBytes = 253;  // of a name in DNS
constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;
constexpr std::string_view kOtlpPrefix = "otlp+";
constexpr std::string_view kClickHousePrefix = "clickhouse+";
constexpr uint16_t kClickHousePort = 8123;
constexpr uint16_t kClickHouseTlsPort = 8443;
constexpr size_t kMaxDatabaseBytes = 64;
// Where collectors take profiles by default.
constexpr std::string_view kOtlpPath = "/v1development/profiles";

bool IsPlain(char c) { return c > ' ' && c < 0x7f; }

bool IsOfHost(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

bool IsHost(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHostBytes &&
         std::ranges::all_of(text, IsOfHost);
}

// Takes a host off the front of what is before the path.
std::optional<std::string_view> TakeHost(std::string_view& authority) {
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
    in6_addr address = {};
    return ::inet_pton(AF_INET6, std::string(host).c_str(), &address) == 1
               ? std::optional(host)
               : std::nullopt;
  }
  const std::string_view host = authority.substr(0, authority.find(':'));
  authority.remove_prefix(host.size());
  return IsHost(host) ? std::optional(host) : std::nullopt;
}

std::optional<uint16_t> PortOf(std::string_view text, uint16_t if_none) {
  if (text.empty()) return if_none;
  if (!text.starts_with(':')) return std::nullopt;
  const auto port = ksym::ParseUnsigned<uint16_t>(text.substr(1), 10);
  return port == 0 ? std::nullopt : port;
}

// The protocol that stands in front of a URL, which is taken off.
PushProtocol TakeProtocol(std::string_view& url) {
  for (const auto& [prefix, protocol] :
       {std::pair(kOtlpPrefix, PushProtocol::kOtlp),
        std::pair(kClickHousePrefix, PushProtocol::kClickHouse)}) {
    if (!url.starts_with(prefix)) continue;
    url.remove_prefix(prefix.size());
    return protocol;
  }
  return PushProtocol::kPprof;
}

uint16_t DefaultPort(PushProtocol protocol, bool is_https) {
  if (protocol == PushProtocol::kClickHouse) {
    return is_https ? kClickHouseTlsPort : kClickHousePort;
  }
  return is_https ? kHttpsPort : kHttpPort;
}

// A name that needs no quotes in SQL nor in a URL.
bool IsDatabase(std::string_view name) {
  return !name.empty() && name.size() <= kMaxDatabaseBytes &&
         std::ranges::all_of(
             name, [](char c) { return IsOfHost(c) && c != '.' && c != '-'; });
}

// Makes a path what its protocol posts to. False: it cannot be.
bool SetPath(PushUrl& url) {
  const std::string_view path = url.path;
  switch (url.protocol) {
    case PushProtocol::kClickHouse:
      if (!IsDatabase(path.substr(1))) return false;
      url.path = "/?database=" + url.path.substr(1);
      break;
    case PushProtocol::kOtlp:
      if (path == "/") url.path = kOtlpPath;
      break;
    default:
      if (path.substr(0, path.find('?')).ends_with("/ingest")) {
        url.protocol = PushProtocol::kPyroscope;
      }
  }
  return true;
}

std::optional<PushUrl> Parse(std::string_view url) {
  PushUrl parsed;
  parsed.protocol = TakeProtocol(url);
  parsed.is_https = url.starts_with("https://");
  if (!parsed.is_https && !url.starts_with("http://")) return std::nullopt;
  const bool is_plain = url.size() <= kMaxUrlBytes && !url.contains('#') &&
                        std::ranges::all_of(url, IsPlain);
  if (!is_plain) return std::nullopt;
  url.remove_prefix(url.find("//") + 2);
  std::string_view authority = url.substr(0, url.find('/'));
  parsed.path = url.substr(authority.size());
  const auto host = TakeHost(authority);
  const auto port =
      PortOf(authority, DefaultPort(parsed.protocol, parsed.is_https));
  if (!host || !port) return std::nullopt;
  parsed.host = *host;
  parsed.port = *port;
  if (parsed.path.empty()) parsed.path += '/';
  if (!SetPath(parsed)) return std::nullopt;
  return parsed;
}

}  // namespace

ksym::Result<PushUrl> ParsePushUrl(std::string_view url) {
  auto parsed = Parse(url);
  if (!parsed) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      fmt::format("\"{}\" is no URL of the form "
                                  "http://HOST:PORT/PATH or https://..., or "
                                  "these with otlp+ in front, or "
                                  "clickhouse+http://HOST:PORT/DATABASE",
                                  url));
  }
  return std::move(*parsed);
}

std::string DirectoryOf(const PushTarget& target) {
  // FNV-1a, which stays the same from one build to the next.
  uint64_t hash = 0xcbf29ce484222325;
  std::string name;
  for (const char c : target.url) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    const bool keep = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                      (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
    if (name.size() < 100) name += keep ? c : '_';
  }
  return fmt::format("{}-{:016x}", name, hash);
}

}  // namespace profd
