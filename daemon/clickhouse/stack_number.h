// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace profd::clickhouse {

// A frame as it counts for its stack's number, and as it is stored.
struct StackFrame {
  uint8_t kind = 0;  // frame_numbers.h
  std::string_view name;
  std::string_view module;
};

// Appends the bytes of a frame that the number is made of.
void AppendIdentity(const StackFrame& frame, std::string& bytes);

// The number of the stack whose frames' bytes these are, the root's first: the
// first 64 bits of their SHA-256. All hosts give a stack the same one.
uint64_t NumberOfStack(std::string_view bytes);

}  // namespace profd::clickhouse
