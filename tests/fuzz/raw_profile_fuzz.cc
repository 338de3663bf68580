// SPDX-License-Identifier: Apache-2.0
// Raw captures: the bytes as a whole file, and, as no fuzzer guesses a CRC, as
// the payload behind a right header. What can be read can be written, and the
// second writing equals the first.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/raw/raw_file.h"
#include "daemon/raw/raw_file_layout.h"

namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

void ReadAndWriteAgain(std::string file) {
  const auto capture = profd::ReadRawCapture(std::move(file));
  if (!capture) return;
  std::string first;
  Check(profd::WriteRawCapture(*capture, first).has_value());
  const auto again = profd::ReadRawCapture(first);
  Check(again.has_value());
  std::string second;
  Check(profd::WriteRawCapture(*again, second).has_value());
  Check(first == second);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadAndWriteAgain(std::string(bytes));
  ReadAndWriteAgain(profd::raw_file::Header(bytes) + std::string(bytes));
  return 0;
}
