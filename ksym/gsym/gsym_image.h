// SPDX-License-Identifier: Apache-2.0
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
    auto file = GsymFile::Parse(bytes.bytes());
    if (!file) return Fail(std::move(file.error()));
    GsymImage image(*file);
    image.mapped_ = std::move(bytes);
    return image;
  }
  static Result<GsymImage> OfMemory(std::vector<std::byte> bytes) {
    auto file = GsymFile::Parse(bytes);
    if (!file) return Fail(std::move(file.error()));
    GsymImage image(*file);
    image.memory_ = std::move(bytes);
    return image;
  }

  const GsymFile& file() const { return file_; }

 private:
  explicit GsymImage(const GsymFile& file) : file_(file) {}

  // Its bytes, which stay where they are when these move: one of the two.
  std::optional<MappedFile> mapped_;
  std::vector<std::byte> memory_;
  GsymFile file_;
};

}  // namespace ksym
