// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/byte_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ksym {

ByteSource ByteSource::OfFile(UniqueFd fd, uint64_t size, Origin origin) {
  return ByteSource(std::move(fd), {}, size, std::move(origin));
}

Result<FileOwner> ByteSource::owner() const {
  if (origin_.owner) return *origin_.owner;
  return OwnerOf(fd());
}

ByteSource ByteSource::OfMemory(std::string bytes) {
  const uint64_t size = bytes.size();
  return ByteSource(UniqueFd(), std::move(bytes), size, {});
}

Result<ByteSource> ByteSource::OfMappedFile(UniqueFd fd, uint64_t size) {
  auto mapping = MappedFile::OfDescriptor(fd.get(), MappedFile::Use::kParts);
  if (!mapping) return Fail(std::move(mapping.error()));
  ByteSource source = OfFile(std::move(fd), size);
  source.mapping_ = std::make_shared<const MappedFile>(std::move(*mapping));
  return source;
}

Status ByteSource::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return Fail(ErrorCode::kCorrupt,
                std::to_string(out.size()) + " bytes at offset " +
                    std::to_string(offset) + " are past the end (" +
                    std::to_string(size_) + ")");
  }
  if (fd_.valid()) return ReadExactlyAt(fd_.get(), offset, out);
  if (!out.empty()) {
    std::memcpy(out.data(), memory_.data() + offset, out.size());
  }
  return {};
}

Result<size_t> ByteSource::ReadSomeAt(uint64_t offset,
                                      std::span<std::byte> out) const {
  const uint64_t left = offset < size_ ? size_ - offset : 0;
  const auto want = static_cast<size_t>(std::min<uint64_t>(left, out.size()));
  const auto read = ReadAt(offset, out.first(want));
  if (!read && want > 0) return Fail(read.error());
  return want;
}

}  // namespace ksym
