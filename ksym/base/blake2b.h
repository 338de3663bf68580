#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ksym {

// BLAKE2b with a result of 32 bytes and no key (RFC 7693): names bytes so that
// nobody can make other bytes of the same name. 1 GB/s. Not thread-safe.
class Blake2b {
 public:
  static constexpr size_t kBytes = 32;

  Blake2b();

  void Update(std::span<const std::byte> bytes);
  // The name, kBytes long. Once, as the last call.
  std::string Finish();

 private:
  static constexpr size_t kBlockBytes = 128;
  using Words = std::array<uint64_t, 8>;

  void Compress(const std::byte* block, bool is_last);

  Words state_;
  uint64_t compressed_ = 0;  // bytes, as the algorithm counts them
  std::array<std::byte, kBlockBytes> block_ = {};
  size_t in_block_ = 0;
};

}  // namespace ksym
