#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/result.h"
#include "ksym/gsym/gsym_file.h"

namespace ksym {

// A GSYM file with the bytes that it is a view of: a mapped file's, or memory.
// Movable; views of it stay valid. Any number of threads may read.
class GsymImage {
 public:
  // kUnsupported, kCorrupt: see GsymFile::Parse.
  static Result<GsymImage> OfFile(MappedFile bytes) {
    GsymImage image;
    image.mapped_ = std::move(bytes);
    return image.Parsed(image.mapped_->bytes());
  }
  static Result<GsymImage> OfMemory(std::vector<std::byte> bytes) {
    GsymImage image;
    image.memory_ = std::move(bytes);
    return image.Parsed(image.memory_);
  }

  const GsymFile& file() const { return *file_; }

 private:
  GsymImage() = default;
  Result<GsymImage> Parsed(std::span<const std::byte> bytes) {
    auto file = GsymFile::Parse(bytes);
    if (!file) return Fail(std::move(file.error()));
    file_ = *file;
    return std::move(*this);
  }

  std::optional<MappedFile> mapped_;
  std::vector<std::byte> memory_;
  std::optional<GsymFile> file_;  // of one of those
};

}  // namespace ksym
