// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/bounded_name.h"

#include <nettle/sha2.h>

#include <array>
#include <cstdint>

namespace ksym {
namespace {

constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
constexpr size_t kHashBytes = 8;
// The ellipsis, '#' and the digits.
constexpr size_t kMarkBytes = kEllipsis.size() + 1 + 2 * kHashBytes;

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0u) == 0x80;
}

// A character of UTF-8 has at most three bytes behind its first; what has more
// is no text and may be cut anywhere.
constexpr size_t kMaxContinuation = 3;

void AppendMark(std::string_view whole, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  sha256_ctx context;
  ::nettle_sha256_init(&context);
  ::nettle_sha256_update(&context, whole.size(),
                         reinterpret_cast<const uint8_t*>(whole.data()));
  std::array<uint8_t, kHashBytes> hash;
  ::nettle_sha256_digest(&context, hash.size(), hash.data());
  out += kEllipsis;
  out += '#';
  for (const uint8_t byte : hash) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15u];
  }
}

}  // namespace

std::string_view BoundName(std::string_view name, std::string& room) {
  if (name.size() <= kMaxShownBytes) return name;
  size_t end = kMaxShownBytes - kMarkBytes;
  for (size_t i = 0; i < kMaxContinuation && IsContinuation(name[end]); ++i) {
    --end;
  }
  room.assign(name.substr(0, end));
  AppendMark(name, room);
  return room;
}

std::string_view BoundPath(std::string_view path, std::string& room) {
  if (path.size() <= kMaxShownBytes) return path;
  std::string_view end =
      path.substr(path.size() - kMaxShownBytes + 1 + kMarkBytes);
  const size_t slash = end.find('/');
  if (slash != std::string_view::npos) {
    end.remove_prefix(slash);
  } else {
    for (size_t i = 0; i < kMaxContinuation && IsContinuation(end[0]); ++i) {
      end.remove_prefix(1);
    }
  }
  room = "/";
  AppendMark(path, room);
  room += end;
  return room;
}

}  // namespace ksym
