// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include <memory>
#include <new>
#include <span>

#include "daemon/clickhouse/batch.h"
#include "daemon/clickhouse/row_binary.h"
#include "ksym/base/byte_reader.h"

namespace profd::clickhouse {
namespace {

using ksym::ErrorCode;
using ksym::Fail;

// It ends in a newline, so that a transfer in text mode shows.
constexpr std::string_view kBatchMagic = "KSYMCHB1\n";
constexpr int kBatchLevel = 3;
// With room for what is not bounded by itself: the numbers of stacks and the
// interval's row.
constexpr size_t kMaxBatchBytes = size_t{80} << 20;
static_assert(kMaxBatchBytes >=
              kMaxStackBytes + kMaxSampleBytes + (size_t{16} << 20));

void AppendBlock(std::string_view bytes, std::string& out) {
  AppendLittleEndian(static_cast<uint32_t>(bytes.size()), out);
  out += bytes;
}

std::string JoinBatch(const Batch& batch) {
  std::string bytes;
  AppendLittleEndian(batch.day, bytes);
  AppendBlock(batch.interval, bytes);
  AppendBlock(batch.samples, bytes);
  AppendLittleEndian(static_cast<uint32_t>(batch.stacks.size()), bytes);
  for (const Batch::Stack& stack : batch.stacks) {
    AppendLittleEndian(stack.number, bytes);
    AppendBlock(stack.row, bytes);
  }
  return bytes;
}

// With a checksum: what a disk has damaged must not become rows.
std::string PackBytes(std::string_view bytes) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&::ZSTD_freeCCtx)> context(
      ::ZSTD_createCCtx(), &::ZSTD_freeCCtx);
  if (!context) throw std::bad_alloc();
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kBatchLevel);
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string packed(::ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ::ZSTD_compress2(
      context.get(), packed.data(), packed.size(), bytes.data(), bytes.size());
  // There is room for any result.
  if (::ZSTD_isError(size) != 0) throw std::bad_alloc();
  packed.resize(size);
  return packed;
}

ksym::Result<std::string> UnpackBytes(std::string_view packed) {
  const unsigned long long size =
      ::ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
      size > kMaxBatchBytes) {
    return Fail(ErrorCode::kCorrupt, "has no size of a batch");
  }
  std::string bytes(size, '\0');
  const size_t done = ::ZSTD_decompress(bytes.data(), bytes.size(),
                                        packed.data(), packed.size());
  if (::ZSTD_isError(done) != 0 || done != size) {
    return Fail(ErrorCode::kCorrupt, "a batch is damaged");
  }
  return bytes;
}

std::string ReadBlock(ksym::ByteReader& reader) {
  const auto size = reader.Read<uint32_t>();
  return std::string(reader.ReadString(size));
}

}  // namespace

std::string PackBatch(const Batch& batch) {
  return std::string(kBatchMagic) + PackBytes(JoinBatch(batch));
}

ksym::Result<Batch> UnpackBatch(std::string_view packed) {
  if (!packed.starts_with(kBatchMagic)) {
    return Fail(ErrorCode::kCorrupt, "is no batch");
  }
  const auto bytes = UnpackBytes(packed.substr(kBatchMagic.size()));
  if (!bytes) return Fail(bytes.error());
  ksym::ByteReader reader(std::as_bytes(std::span(*bytes)));
  Batch batch;
  batch.day = reader.Read<uint16_t>();
  batch.interval = ReadBlock(reader);
  batch.samples = ReadBlock(reader);
  // Each takes twelve bytes at least: the loop ends with them.
  for (auto left = reader.Read<uint32_t>(); left > 0 && reader.ok(); --left) {
    const auto number = reader.Read<uint64_t>();
    batch.stacks.push_back({.number = number, .row = ReadBlock(reader)});
  }
  if (!reader.ok() || !reader.AtEnd()) {
    return Fail(ErrorCode::kCorrupt, "a batch is damaged");
  }
  return batch;
}

}  // namespace profd::clickhouse
