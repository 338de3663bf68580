#pragma once

#include <cstdint>

namespace profd {

// How a profile is written; the formats that an option has no meaning for
// ignore it.
struct OutputOptions {
  enum class By : uint8_t { kComm, kPid, kTid };
  By by = By::kComm;         // --by: what samples are grouped and shown by
  bool annotations = false;  // -a: "_[k]" and "_[i]" in folded stacks
  bool delimiter = false;    // -d: a mark between user and kernel frames
  bool addresses = false;    // -A: run-time addresses in text and JSON
};

}  // namespace profd
