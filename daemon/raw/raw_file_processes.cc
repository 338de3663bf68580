// SPDX-License-Identifier: Apache-2.0
#include <protozero/pbf_message.hpp>
#include <utility>
#include <vector>

#include "daemon/raw/raw_file_decode.h"
#include "daemon/raw/raw_file_layout.h"
#include "ksym/base/byte_reader.h"

namespace profd::raw_file {
namespace {

using protozero::data_view;
using protozero::pbf_message;
using protozero::pbf_wire_type;

void AddMapping(data_view view, const MappedPathOf& path_of,
                std::vector<ksym::Mapping>& mappings) {
  ksym::Mapping mapping;
  uint64_t size = 0;
  pbf_message<MappingField> message(view);
  while (message.next()) {
    if (message.wire_type() != pbf_wire_type::varint) {
      message.skip();
      continue;
    }
    const MappingField field = message.tag();
    const uint64_t value = message.get_uint64();
    switch (field) {
      case MappingField::kStart:
        mapping.start.value = value;
        break;
      case MappingField::kSize:
        size = value;
        break;
      case MappingField::kFileOffset:
        mapping.file_offset.value = value;
        break;
      case MappingField::kDeviceMajor:
        mapping.device_major = To32Bits(value);
        break;
      case MappingField::kDeviceMinor:
        mapping.device_minor = To32Bits(value);
        break;
      case MappingField::kInode:
        mapping.inode = value;
        break;
      case MappingField::kPath:
        mapping.path = path_of(value);
        break;
      default:
        break;
    }
  }
  const auto end = ksym::CheckedAdd(mapping.start.value, size);
  // They are looked up by halving, which needs them in order.
  if (!end || size == 0 ||
      (!mappings.empty() && mapping.start < mappings.back().end)) {
    throw Malformed("mappings are empty or overlap");
  }
  mapping.end.value = *end;
  mappings.push_back(std::move(mapping));
}

}  // namespace

ProcessOfFile ReadProcess(data_view view, const MappedPathOf& path_of) {
  ProcessOfFile read;
  pbf_message<ProcessField> message(view);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case VarintField(ProcessField::kPid):
        read.image.id.pid = To32Bits(message.get_uint64());
        break;
      case VarintField(ProcessField::kExecCount):
        read.image.id.exec_count = To32Bits(message.get_uint64());
        break;
      case VarintField(ProcessField::kStartNs):
        read.image.id.start_ns = message.get_uint64();
        break;
      case VarintField(ProcessField::kHasImage):
        read.has_image = message.get_uint64() != 0;
        break;
      case BytesField(ProcessField::kMapping):
        AddMapping(message.get_view(), path_of, read.image.mappings);
        break;
      default:
        message.skip();
    }
  }
  return read;
}

}  // namespace profd::raw_file
