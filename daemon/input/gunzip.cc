// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/gunzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

namespace profd {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, gzip's frame
constexpr size_t kStepBytes = size_t{1} << 20;

}  // namespace

ksym::Result<std::string> Gunzip(std::string_view bytes, size_t max_bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &inflateEnd);
  const size_t size = bytes.size();
  std::string out;
  size_t written = 0;
  while (true) {
    if (written == max_bytes) {
      return ksym::Fail(
          ksym::ErrorCode::kLimit,
          fmt::format("unpacks to more than {} bytes", max_bytes));
    }
    // The size that the end of the data tells is not believed.
    out.resize(std::min(max_bytes, std::max(written * 2, kStepBytes)));
    constexpr size_t kMax = std::numeric_limits<uInt>::max();
    const size_t given = std::min(bytes.size(), kMax);
    const size_t room = std::min(out.size() - written, kMax);
    // zlib does not write to its input.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(given - stream.avail_in);
    written += room - stream.avail_out;
    if (status == Z_STREAM_END) {
      if (bytes.empty()) break;
      inflateReset(&stream);  // another member follows
    } else if (status != Z_OK) {
      return ksym::Fail(
          ksym::ErrorCode::kCorrupt,
          fmt::format("no gzip data at offset {}", size - bytes.size()));
    }
  }
  out.resize(written);
  return out;
}

}  // namespace profd
