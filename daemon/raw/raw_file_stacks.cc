// SPDX-License-Identifier: Apache-2.0
#include <protozero/pbf_message.hpp>
#include <string_view>

#include "daemon/raw/raw_file_decode.h"
#include "daemon/raw/raw_file_layout.h"

namespace profd::raw_file {
namespace {

using protozero::data_view;
using protozero::pbf_message;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

StackEnd ToStackEnd(uint64_t value) {
  if (value >= kStackEnds) throw Malformed("unknown end of a stack");
  return static_cast<StackEnd>(value);
}

// The bytes of a packed field, if they are varints that protozero can read.
std::string_view WholeNumbers(data_view view) {
  // Frames are decoded where they are used, where nothing could be refused any
  // more.
  constexpr int kMaxVarintBytes = 10;
  int bytes = 0;  // of the number that has begun
  for (const char byte : std::string_view(view.data(), view.size())) {
    if (++bytes > kMaxVarintBytes) {
      throw protozero::varint_too_long_exception();
    }
    if ((static_cast<unsigned char>(byte) & 0x80u) == 0) bytes = 0;
  }
  if (bytes != 0) throw protozero::end_of_buffer_exception();
  return {view.data(), view.size()};
}

// Sets the frames of a stack that has none yet.
void SetFrames(std::string_view frames, PackedStack& stack) {
  if (!stack.frames.empty()) throw Malformed("a stack has its frames twice");
  stack.frames = frames;
}

void SetMixedFrames(data_view view, PackedStack& stack) {
  const std::string_view frames(view.data(), view.size());
  if (!IsPackedMixedFrames(frames)) {
    throw Malformed("frames of several kinds are not whole");
  }
  SetFrames(frames, stack);
  stack.mixed = true;
}

}  // namespace

StackOfFile ReadStack(data_view view) {
  StackOfFile read;
  pbf_message<StackField> message(view);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case tag_and_type(StackField::kId, pbf_wire_type::fixed64):
        read.id = message.get_fixed64();
        break;
      case BytesField(StackField::kFrame):
        SetFrames(WholeNumbers(message.get_view()), read.stack);
        break;
      case BytesField(StackField::kMixedFrames):
        SetMixedFrames(message.get_view(), read.stack);
        break;
      case VarintField(StackField::kTruncated):
        if (message.get_uint64() != 0) read.stack.end = StackEnd::kDepthLimit;
        break;
      case VarintField(StackField::kEnd):
        read.stack.end = ToStackEnd(message.get_uint64());
        break;
      case VarintField(StackField::kUsedFramePointers):
        read.stack.used_frame_pointers = message.get_uint64() != 0;
        break;
      case VarintField(StackField::kMissing):
        read.missing = message.get_uint64() != 0;
        break;
      default:
        message.skip();
    }
  }
  return read;
}

}  // namespace profd::raw_file
