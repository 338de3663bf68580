#include "ksym/base/blake2b.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ksym {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// `size` bytes, taken in parts of `step`.
std::string NameOf(size_t size, size_t step) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(i * 7 + size);
  }
  Blake2b name;
  for (size_t at = 0; at < size; at += step) {
    const std::string part = bytes.substr(at, step);
    name.Update(std::as_bytes(std::span(part)));
  }
  return Hex(name.Finish());
}

// The names are those of another implementation (Python's hashlib), for sizes
// around the block's of 128 bytes, in one part or in many.
TEST(Blake2bTest, IsWhatOthersCompute) {
  const std::pair<size_t, const char*> names[] = {
      {0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
      {1, "ee155ace9c40292074cb6aff8c9ccdd273c81648ff1149ef36bcea6ebb8a3e25"},
      {127, "f609ab2904b340cd075920018e0e3c6f6a90a3dae3edf03d3cccc0634a81ffe3"},
      {128, "0702c64922fb7635a1b799668a7e89ba9c5fe55ed7bd2fdecb001544073afad9"},
      {129, "490091b32bad7b3380c9e593d341bce9b73ff9d4ebcf0091ff932bdff7279897"},
      {256, "3d0cb2693dfbac42af5a6cc960953fea8714aa39c4bcd054ef61d6b5e98ade4a"},
      {257, "080f7f2ee61cc8ffcf2ad907f7a9824a8445c5e4b194a0106c65f9b9c1ea6787"},
      {1000,
       "a2ae1ecc90361e0bb07dab9789a4b0a724ee3cf05623ac6cefa1e6af3da4aae8"},
  };
  for (const auto& [size, name] : names) {
    for (const size_t step : {1, 7, 128, 129, 5000}) {
      EXPECT_EQ(NameOf(size, step), name) << size << " in parts of " << step;
    }
  }
}

}  // namespace
}  // namespace ksym
