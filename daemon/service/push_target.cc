#include "daemon/service/push_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace profd {
namespace {

bool IsPlain(char c) { return c > ' ' && c < 0x7f; }

}  // namespace

ksym::Result<PushUrl> ParsePushUrl(std::string_view url) {
  const size_t scheme = url.starts_with("http://")    ? 7
                        : url.starts_with("https://") ? 8
                                                      : 0;
  const size_t slash = std::min(url.find('/', scheme), url.size());
  const std::string_view host = url.substr(scheme, slash - scheme);
  const bool is_url = scheme != 0 && !host.empty() &&
                      host.find_first_of("@?#") == std::string_view::npos &&
                      !url.contains('#') && std::ranges::all_of(url, IsPlain);
  if (!is_url) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      fmt::format("\"{}\" is no URL of the form "
                                  "http://HOST:PORT/PATH or https://...",
                                  url));
  }
  PushUrl parsed = {.server = std::string(url.substr(0, slash)),
                    .path = std::string(url.substr(slash))};
  if (parsed.path.empty()) parsed.path += '/';
  parsed.is_pyroscope =
      parsed.path.substr(0, parsed.path.find('?')).ends_with("/ingest");
  return parsed;
}

std::string FolderOf(const PushTarget& target) {
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
