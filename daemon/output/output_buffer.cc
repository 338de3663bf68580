// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/output_buffer.h"

#include <utility>

namespace profd {

OutputBuffer::OutputBuffer(Sink sink) : sink_(std::move(sink)) {}

void OutputBuffer::Write(std::string_view bytes) {
  Flush();
  if (status_ && !bytes.empty()) status_ = sink_(bytes);
}

ksym::Status OutputBuffer::Finish() {
  Flush();
  return std::move(status_);
}

void OutputBuffer::Flush() {
  if (status_ && !text_.empty()) status_ = sink_(text_);
  text_.clear();
}

}  // namespace profd
