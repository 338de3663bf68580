// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/unpacker.h"

#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

class ZlibUnpacker : public Unpacker {
 public:
  ZlibUnpacker() : ok_(::inflateInit(&stream_) == Z_OK) {}
  ~ZlibUnpacker() override {
    if (ok_) ::inflateEnd(&stream_);
  }

  bool ok() const { return ok_; }
  bool at_end() const override { return at_end_; }

  bool Append(std::span<const std::byte> packed, size_t max_bytes,
              std::string& text) override {
    // zlib's interface is not const-correct.
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    while (!at_end_) {
      const size_t used = text.size();
      const size_t room = std::min(kBlockBytes, max_bytes - used);
      text.resize(used + room);
      stream_.next_out = reinterpret_cast<Bytef*>(text.data()) + used;
      stream_.avail_out = static_cast<uInt>(room);
      // Also with no room left: the checksum at the end has yet to be read.
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      text.resize(text.size() - stream_.avail_out);
      at_end_ = result == Z_STREAM_END;
      if (at_end_) break;
      // No progress: either all input is used up, or there is no room left.
      if (result == Z_BUF_ERROR) return stream_.avail_in == 0;
      if (result != Z_OK) return false;
      if (stream_.avail_in == 0 && stream_.avail_out > 0) return true;
    }
    return true;
  }

 private:
  z_stream stream_ = {};
  bool ok_;
  bool at_end_ = false;
};

// One frame or several in a row: RFC 8878, chapter 3.
class ZstdUnpacker : public Unpacker {
 public:
  ZstdUnpacker() : stream_(::ZSTD_createDStream()) {}
  ~ZstdUnpacker() override { ::ZSTD_freeDStream(stream_); }

  bool ok() const {
    constexpr int kMaxWindowLog = 27;  // as far as any level of zstd(1) goes
    return stream_ != nullptr &&
           ::ZSTD_isError(::ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax,
                                                   kMaxWindowLog)) == 0;
  }
  bool at_end() const override { return at_end_; }

  bool Append(std::span<const std::byte> packed, size_t max_bytes,
              std::string& text) override {
    ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
    for (;;) {
      const size_t used = text.size();
      const size_t room = std::min(kBlockBytes, max_bytes - used);
      text.resize(used + room);
      ZSTD_outBuffer out = {text.data() + used, room, 0};
      const size_t in_before = in.pos;
      const size_t result = ::ZSTD_decompressStream(stream_, &out, &in);
      text.resize(used + out.pos);
      if (::ZSTD_isError(result) != 0) return false;
      // 0 is the end of a frame, behind which another may follow.
      at_end_ = result == 0;
      if (in.pos == in.size && (at_end_ || out.pos < room)) return true;
      // Neither read nor wrote: there is no room left.
      if (in.pos == in_before && out.pos == 0) return in.pos == in.size;
    }
  }

 private:
  ZSTD_DStream* stream_;
  bool at_end_ = false;
};

template <typename T>
std::unique_ptr<Unpacker> Make() {
  auto unpacker = std::make_unique<T>();
  if (!unpacker->ok()) return nullptr;
  return unpacker;
}

// <elf.h> of glibc 2.36 does not have it yet.
constexpr uint32_t kElfCompressZstd = 2;

}  // namespace

bool Unpacker::Knows(uint32_t type) {
  return type == ELFCOMPRESS_ZLIB || type == kElfCompressZstd;
}

std::unique_ptr<Unpacker> Unpacker::OfType(uint32_t type) {
  if (type == ELFCOMPRESS_ZLIB) return Make<ZlibUnpacker>();
  if (type == kElfCompressZstd) return Make<ZstdUnpacker>();
  return nullptr;
}

}  // namespace ksym
