// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// What a writer writes, passed on in pieces, so that no output is in memory as
// a whole. After the first failure the rest is dropped, and Finish() tells.
class OutputBuffer {
 public:
  // Takes the next bytes; not kept beyond the call.
  using Sink = std::function<ksym::Status(std::string_view)>;
  explicit OutputBuffer(Sink sink);

  // Writers append to it and call PassOn() now and then. False: the sink failed
  // and nothing more is taken, so that they may stop.
  std::string& text() { return text_; }
  bool PassOn() {
    if (text_.size() >= kPieceBytes) Flush();
    return status_.has_value();
  }
  // For large outputs that are in memory anyway: without a copy.
  void Write(std::string_view bytes);
  // Passes the rest on. The first failure of the sink, if there was one.
  [[nodiscard]] ksym::Status Finish();

 private:
  static constexpr size_t kPieceBytes = size_t{256} << 10;

  void Flush();

  Sink sink_;
  std::string text_;
  ksym::Status status_;
};

}  // namespace profd
