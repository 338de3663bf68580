// SPDX-License-Identifier: Apache-2.0
// Any bytes as a table from the cache. Fuzzers do not guess checksums, so the
// input is read as it is, and again with the right one. The corpus holds what
// EncodeUnwindTable writes for the tables of
// tests/ksym/unwind/unwind_cache_test.cc.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "ksym/unwind/unwind_table_file.h"

namespace {

constexpr size_t kHeaderBytes = 128;
constexpr size_t kChecksumAt = 124;

void Check(const std::string& bytes) {
  const auto table =
      ksym::DecodeUnwindTable(std::as_bytes(std::span(bytes)), "id");
  if (!table) return;
  for (uint64_t pc = 0; pc < table->size; pc += table->size / 64 + 1) {
    const ksym::UnwindRow* row = ksym::FindUnwindRow(*table, pc);
    if (row == nullptr || row->pc > pc) std::abort();
  }
  if (ksym::FindUnwindRow(*table, table->size) != nullptr) std::abort();
  if (ksym::EncodeUnwindTable(*table, "id").size() != bytes.size()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  if (size < kHeaderBytes) return 0;
  uLong crc = ::crc32_z(0, data, kChecksumAt);
  crc = ::crc32_z(crc, data + kHeaderBytes, size - kHeaderBytes);
  const auto checksum = static_cast<uint32_t>(crc);
  std::memcpy(bytes.data() + kChecksumAt, &checksum, sizeof(checksum));
  Check(bytes);
  return 0;
}
