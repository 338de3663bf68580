// SPDX-License-Identifier: Apache-2.0
#pragma once

// The declarations that the parts of the raw capture's reader share.

#include <cstdint>
#include <functional>
#include <limits>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "daemon/profile/mapped_object.h"
#include "daemon/profile/parked.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/profile/thread_sums.h"

namespace profd::raw_file {

// protozero reports damage by exceptions, so ours does the same; none leaves
// ReadRawCapture().
class Malformed : public protozero::exception {
 public:
  explicit Malformed(const char* what) : what_(what) {}
  const char* what() const noexcept override { return what_; }

 private:
  const char* what_;
};

template <typename Field>
constexpr uint32_t VarintField(Field field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
template <typename Field>
constexpr uint32_t BytesField(Field field) {
  return protozero::tag_and_type(field,
                                 protozero::pbf_wire_type::length_delimited);
}

inline uint32_t To32Bits(uint64_t value) {
  if (value > std::numeric_limits<uint32_t>::max()) {
    throw Malformed("a 32-bit number is larger");
  }
  return static_cast<uint32_t>(value);
}

// The numbers of a packed field.
class Column {
 public:
  Column() = default;
  explicit Column(protozero::data_view view)
      : next_(view.data()), end_(view.data() + view.size()) {}
  bool AtEnd() const { return next_ == end_; }
  uint64_t Next() { return protozero::decode_varint(&next_, end_); }

 private:
  const char* next_ = nullptr;
  const char* end_ = nullptr;
};

// Set the members from the file's message. Throw what protozero throws.
void ReadMetadata(protozero::data_view view, CaptureMetadata& metadata);
void ReadAccounting(protozero::data_view view, Accounting& accounting);
// A stack of the file, whose bytes its frames are.
struct StackOfFile {
  StackId id = 0;
  bool missing = false;  // its frames never came out of the kernel
  PackedStack stack;
};
StackOfFile ReadStack(protozero::data_view view);
// Throw what protozero throws, and `path_of`, which gives the text of an index.
using PathOf = std::function<std::string(uint64_t index)>;
MappedObject ReadModule(protozero::data_view view, const PathOf& path_of);
KernelPart ReadKernelPart(protozero::data_view view);
std::vector<ThreadLife> ReadThreadLives(protozero::data_view view);
// `comm_of` gives the command name of an index.
ThreadSums ReadThreadSums(protozero::data_view view, const PathOf& comm_of);
ksym::KernelSymbolChange ReadKernelChange(protozero::data_view view,
                                          const PathOf& path_of);
RuntimeFrameTable::value_type ReadRuntimeFrame(protozero::data_view view,
                                               const PathOf& path_of);
// The same; mappings share their paths.
using MappedPathOf = std::function<const ksym::SharedPath&(uint64_t index)>;
struct ProcessOfFile {
  ksym::ProcessImage image;
  bool has_image = false;  // false: gone before it could be read
};
ProcessOfFile ReadProcess(protozero::data_view view,
                          const MappedPathOf& path_of);

}  // namespace profd::raw_file
