// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "ksym/symbolizer.h"

// Processes as they are now, for tests that name their own code.
namespace ksym {

inline Address AddressOf(const void* p) {
  return {reinterpret_cast<uint64_t>(p)};
}

inline ProcessImage ImageOf(pid_t pid) {
  ProcessImage image;
  image.id.pid = static_cast<uint32_t>(pid);
  auto mappings = ReadMaps(image.id.pid);
  EXPECT_TRUE(mappings);
  if (mappings) image.mappings = std::move(*mappings);
  return image;
}

inline ProcessImage OwnImage() { return ImageOf(::getpid()); }

}  // namespace ksym
