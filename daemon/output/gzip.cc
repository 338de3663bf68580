// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace profd {

std::string Gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;  // the largest window, gzip's frame
  constexpr int kMemoryLevel = 8;       // zlib's default
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();  // all that can fail with these arguments
  }
  std::string out;
  size_t written = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    // zlib counts in 32 bits, also where there are 4 GiB.
    constexpr size_t kMax = std::numeric_limits<uInt>::max();
    if (out.size() - written < 16384) out.resize(written + written / 2 + 65536);
    const size_t given = std::min(bytes.size(), kMax);
    const size_t room = std::min(out.size() - written, kMax);
    // zlib does not write to its input.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    status = deflate(&stream, given == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    bytes.remove_prefix(given - stream.avail_in);
    written += room - stream.avail_out;
  }
  deflateEnd(&stream);
  out.resize(written);
  return out;
}

}  // namespace profd
