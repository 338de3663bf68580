// SPDX-License-Identifier: Apache-2.0
// Any bytes as the answer of a receiver of OpenTelemetry's profiles. Whatever
// it is, the message is short, and safe to print.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/service/otlp_answer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const profd::OtlpAnswer answer = profd::ReadOtlpAnswer(
      std::string_view(reinterpret_cast<const char*>(data), size));
  // A byte that is not printable is written as four.
  if (answer.message.size() > 800) std::abort();
  for (const char c : answer.message) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) std::abort();
  }
  return 0;
}
