// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <utility>

// Fields of a protobuf message of anyone, each of the type that it should have.
// A field of another type, or a value that cannot be, throws Wrong, which the
// reader of the format catches, and nobody else.
namespace profd::checked_message {

struct Wrong {
  std::string message;
};

[[noreturn]] inline void Refuse(std::string message) {
  throw Wrong{std::move(message)};
}

// protozero takes a field for what is asked for, whatever it is.
inline void Expect(const protozero::pbf_reader& message,
                   protozero::pbf_wire_type type) {
  if (message.wire_type() == type) return;
  Refuse(fmt::format("a field {} has the wrong wire type",
                     static_cast<uint32_t>(message.tag())));
}

inline int64_t Signed(protozero::pbf_reader& message) {
  Expect(message, protozero::pbf_wire_type::varint);
  return message.get_int64();
}

inline uint64_t Unsigned(protozero::pbf_reader& message) {
  Expect(message, protozero::pbf_wire_type::varint);
  return message.get_uint64();
}

// Lives as long as the message's bytes.
inline std::string_view Bytes(protozero::pbf_reader& message) {
  Expect(message, protozero::pbf_wire_type::length_delimited);
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

inline protozero::pbf_reader Nested(protozero::pbf_reader& message) {
  Expect(message, protozero::pbf_wire_type::length_delimited);
  return message.get_message();
}

}  // namespace profd::checked_message
