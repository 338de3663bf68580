// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/stack_number.h"

#include <nettle/sha2.h>

#include <array>

#include "daemon/clickhouse/row_binary.h"

namespace profd::clickhouse {

// Lengths stand in front, or "ab" and "c" would be "a" and "bc".
void AppendIdentity(const StackFrame& frame, std::string& bytes) {
  bytes += static_cast<char>(frame.kind);
  for (const std::string_view text : {frame.name, frame.module}) {
    AppendLittleEndian(static_cast<uint32_t>(text.size()), bytes);
    bytes += text;
  }
}

uint64_t NumberOfStack(std::string_view bytes) {
  sha256_ctx state;
  ::nettle_sha256_init(&state);
  ::nettle_sha256_update(&state, bytes.size(),
                         reinterpret_cast<const uint8_t*>(bytes.data()));
  std::array<uint8_t, 8> digest;
  ::nettle_sha256_digest(&state, digest.size(), digest.data());
  uint64_t number = 0;
  for (const uint8_t byte : digest) number = number << 8 | byte;
  return number;
}

}  // namespace profd::clickhouse
