// SPDX-License-Identifier: Apache-2.0
// What a raw capture says beside its samples: files and the kernel, to name it
// elsewhere, how long threads lived, and the sums of their time.

#include <algorithm>
#include <array>
#include <protozero/pbf_message.hpp>
#include <string>
#include <vector>

#include "daemon/raw/raw_file.h"
#include "daemon/raw/raw_file_decode.h"
#include "daemon/raw/raw_file_layout.h"
#include "ksym/base/byte_reader.h"

namespace profd::raw_file {
namespace {

using protozero::data_view;
using protozero::pbf_message;
using protozero::pbf_wire_type;

// It becomes part of file names.
std::string BuildId(data_view view) {
  constexpr size_t kMaxDigits = 128;
  std::string build_id(view.data(), view.size());
  const bool is_hex =
      build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hex || build_id.size() < 2 || build_id.size() > kMaxDigits) {
    throw Malformed("a build-id is no hexadecimal number");
  }
  return build_id;
}

CodeSegment Segment(data_view view) {
  CodeSegment segment;
  pbf_message<SegmentField> message(view);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case VarintField(SegmentField::kFileOffset):
        segment.file_offset = message.get_uint64();
        break;
      case VarintField(SegmentField::kFileSize):
        segment.file_size = message.get_uint64();
        break;
      case VarintField(SegmentField::kAddress):
        segment.address = message.get_uint64();
        break;
      default:
        message.skip();
    }
  }
  if (!ksym::CheckedAdd(segment.file_offset, segment.file_size) ||
      !ksym::CheckedAdd(segment.address, segment.file_size)) {
    throw Malformed("a segment wraps around");
  }
  return segment;
}

using ThreadColumns = std::array<Column, kThreadSumsColumns>;

std::vector<ThreadSums::Thread> ReadListedThreads(ThreadColumns& columns,
                                                  const PathOf& comm_of) {
  std::vector<ThreadSums::Thread> threads;
  const auto ended = [](const Column& column) { return column.AtEnd(); };
  while (std::ranges::none_of(columns, ended)) {
    if (threads.size() == ThreadSums::kMaxThreads) {
      throw Malformed("too many threads are listed");
    }
    ThreadSums::Thread& thread = threads.emplace_back();
    thread.pid = To32Bits(columns[0].Next());
    thread.tid = To32Bits(columns[1].Next());
    thread.comm = comm_of(columns[2].Next());
    thread.times = {.running_ns = columns[3].Next(),
                    .runnable_ns = columns[4].Next(),
                    .blocked_ns = columns[5].Next()};
  }
  if (!std::ranges::all_of(columns, ended)) {
    throw Malformed("the columns of threads' sums differ in length");
  }
  return threads;
}

}  // namespace

MappedObject ReadModule(data_view view, const PathOf& path_of) {
  MappedObject module;
  pbf_message<ModuleField> message(view);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case VarintField(ModuleField::kDeviceMajor):
        module.device_major = To32Bits(message.get_uint64());
        break;
      case VarintField(ModuleField::kDeviceMinor):
        module.device_minor = To32Bits(message.get_uint64());
        break;
      case VarintField(ModuleField::kInode):
        module.inode = message.get_uint64();
        break;
      case VarintField(ModuleField::kPath):
        module.path = path_of(message.get_uint64());
        break;
      case BytesField(ModuleField::kBuildId):
        module.build_id = BuildId(message.get_view());
        break;
      case BytesField(ModuleField::kSegment):
        module.segments.push_back(Segment(message.get_view()));
        break;
      default:
        message.skip();
    }
  }
  // It is what the file is known by elsewhere.
  if (module.build_id.empty()) throw Malformed("a module has no build-id");
  return module;
}

KernelPart ReadKernelPart(data_view view) {
  constexpr size_t kMaxNameBytes = 256;
  KernelPart part;
  pbf_message<KernelPartField> message(view);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case BytesField(KernelPartField::kName):
        part.name = message.get_bytes();
        break;
      case BytesField(KernelPartField::kBuildId):
        part.build_id = BuildId(message.get_view());
        break;
      case VarintField(KernelPartField::kStart):
        part.start = message.get_uint64();
        break;
      case VarintField(KernelPartField::kSize):
        part.size = message.get_uint64();
        break;
      default:
        message.skip();
    }
  }
  if (part.build_id.empty() || part.name.size() > kMaxNameBytes ||
      !ksym::CheckedAdd(part.start, part.size)) {
    throw Malformed("a part of the kernel is malformed");
  }
  return part;
}

std::vector<ThreadLife> ReadThreadLives(data_view view) {
  std::array<Column, kThreadLivesColumns> columns;
  pbf_message<ThreadLivesField> message(view);
  while (message.next()) {
    const auto index = static_cast<size_t>(message.tag()) - 1;
    if (message.wire_type() == protozero::pbf_wire_type::length_delimited &&
        index < columns.size()) {
      columns[index] = Column(message.get_view());
    } else {
      message.skip();
    }
  }
  auto& [pids, tids, times] = columns;
  std::vector<ThreadLife> lives;
  while (!pids.AtEnd() && !tids.AtEnd() && !times.AtEnd()) {
    lives.push_back({.pid = To32Bits(pids.Next()),
                     .tid = To32Bits(tids.Next()),
                     .ns = times.Next()});
  }
  if (!pids.AtEnd() || !tids.AtEnd() || !times.AtEnd()) {
    throw Malformed("the columns of threads' lives differ in length");
  }
  return lives;
}

ThreadSums ReadThreadSums(data_view view, const PathOf& comm_of) {
  constexpr auto kFirst = static_cast<uint32_t>(ThreadSumsField::kFirstColumn);
  ThreadSums sums;
  ThreadColumns columns;
  pbf_message<ThreadSumsField> message(view);
  while (message.next()) {
    const auto tag = static_cast<uint32_t>(message.tag());
    switch (message.tag_and_type()) {
      case VarintField(ThreadSumsField::kCount):
        sums.count = To32Bits(message.get_uint64());
        break;
      case VarintField(ThreadSumsField::kRunningNs):
        sums.sum.running_ns = message.get_uint64();
        break;
      case VarintField(ThreadSumsField::kRunnableNs):
        sums.sum.runnable_ns = message.get_uint64();
        break;
      case VarintField(ThreadSumsField::kBlockedNs):
        sums.sum.blocked_ns = message.get_uint64();
        break;
      default:
        if (message.wire_type() == protozero::pbf_wire_type::length_delimited &&
            tag >= kFirst && tag - kFirst < columns.size()) {
          columns[tag - kFirst] = Column(message.get_view());
        } else {
          message.skip();
        }
    }
  }
  sums.threads = ReadListedThreads(columns, comm_of);
  if (sums.threads.size() > sums.count) {
    throw Malformed("more threads are listed than there were");
  }
  return sums;
}

ksym::KernelSymbolChange ReadKernelChange(data_view view,
                                          const PathOf& path_of) {
  ksym::KernelSymbolChange change;
  pbf_message<KernelChangeField> message(view);
  while (message.next()) {
    if (message.wire_type() != pbf_wire_type::varint) {
      message.skip();
      continue;
    }
    const KernelChangeField field = message.tag();
    const uint64_t value = message.get_uint64();
    switch (field) {
      case KernelChangeField::kRemoved:
        if (value != 0) change.kind = ksym::KernelSymbolChange::Kind::kRemoved;
        break;
      case KernelChangeField::kStart:
        change.start.value = value;
        break;
      case KernelChangeField::kSize:
        change.size = value;
        break;
      case KernelChangeField::kName:
        change.name = path_of(value);
        break;
      case KernelChangeField::kModule:
        change.module = path_of(value);
        break;
      default:
        break;
    }
  }
  if (!ksym::CheckedAdd(change.start.value, change.size)) {
    throw Malformed("a kernel symbol ends past the last address");
  }
  return change;
}

RuntimeFrameTable::value_type ReadRuntimeFrame(data_view view,
                                               const PathOf& path_of) {
  RuntimeFrameId id = 0;
  RuntimeFrame frame;
  pbf_message<RuntimeFrameField> message(view);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case VarintField(RuntimeFrameField::kId):
        id = message.get_uint64();
        break;
      case VarintField(RuntimeFrameField::kName):
        frame.name = path_of(message.get_uint64());
        break;
      case VarintField(RuntimeFrameField::kFile):
        frame.file = path_of(message.get_uint64());
        break;
      case VarintField(RuntimeFrameField::kFirstLine):
        frame.first_line = To32Bits(message.get_uint64());
        break;
      case VarintField(RuntimeFrameField::kLine):
        frame.line = To32Bits(message.get_uint64());
        break;
      case VarintField(RuntimeFrameField::kCaller):
        frame.caller = message.get_uint64();
        break;
      case VarintField(RuntimeFrameField::kLineIsNear):
        frame.line_is_near = message.get_bool();
        break;
      case VarintField(RuntimeFrameField::kIsInterpreted):
        frame.is_interpreted = message.get_bool();
        break;
      default:
        message.skip();
    }
  }
  return {id, std::move(frame)};
}

}  // namespace profd::raw_file
