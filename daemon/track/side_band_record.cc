// SPDX-License-Identifier: Apache-2.0
#include <linux/perf_event.h>

#include <string_view>
#include <utility>

#include "daemon/track/side_band.h"
#include "ksym/base/byte_reader.h"

namespace profd {
namespace {

using ksym::ByteReader;

// The bytes that sample_id_all appends to each record for SAMPLE_TID |
// SAMPLE_TIME.
constexpr size_t kSampleIdBytes = 16;

// Strings are padded with zeros to a multiple of eight bytes.
std::string_view TakeString(ByteReader& reader) {
  const std::string_view padded = reader.ReadString(reader.remaining());
  return padded.substr(0, padded.find('\0'));
}

ksym::KernelSymbolChange ReadKernelSymbol(ByteReader& reader) {
  using Kind = ksym::KernelSymbolChange::Kind;
  ksym::KernelSymbolChange change;
  change.start = ksym::Address{reader.Read<uint64_t>()};
  change.size = reader.Read<uint32_t>();
  // Else out of line: slots of kprobes, trampolines of ftrace.
  if (reader.Read<uint16_t>() == PERF_RECORD_KSYMBOL_TYPE_BPF) {
    change.module = "bpf";
  }
  const auto flags = reader.Read<uint16_t>();
  change.kind = (flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0
                    ? Kind::kRemoved
                    : Kind::kAdded;
  change.name = TakeString(reader);
  return change;
}

std::array<uint32_t, 3> ReadIds(ByteReader& reader) {
  std::array<uint32_t, 3> ids = {};
  for (uint32_t& id : ids) id = reader.Read<uint32_t>();
  return ids;
}

MapReport ReadMap(ByteReader& reader) {
  MapReport map;
  map.pid = reader.Read<uint32_t>();
  reader.Read<uint32_t>();  // tid
  ksym::Mapping& mapping = map.mapping;
  mapping.start = ksym::Address{reader.Read<uint64_t>()};
  mapping.end = mapping.start + reader.Read<uint64_t>();
  mapping.file_offset = ksym::FileOffset{reader.Read<uint64_t>()};
  mapping.device_major = reader.Read<uint32_t>();
  mapping.device_minor = reader.Read<uint32_t>();
  mapping.inode = reader.Read<uint64_t>();
  reader.Read<uint64_t>();  // generation of the inode
  reader.Read<uint64_t>();  // protection, flags
  mapping.path = TakeString(reader);
  // perf's name for anonymous memory; /proc/PID/maps has none.
  if (mapping.path == "//anon") mapping.path = {};
  return map;
}

}  // namespace

bool IsOfThread(const perf_event_header& header,
                const std::array<uint32_t, 3>& ids) {
  const auto [pid, parent, thread] = ids;
  // A new thread has its maker's pid. Each thread reports its end, and each
  // change of its name; only an exec makes another program of the process.
  switch (header.type) {
    case PERF_RECORD_FORK:
      return pid == parent;
    case PERF_RECORD_EXIT:
      return pid != thread;
    case PERF_RECORD_COMM:
      return (header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0;
    default:
      return false;
  }
}

SideBandEvent ParseSideBandRecord(std::span<const std::byte> record) {
  SideBandEvent event;
  if (record.size() < sizeof(perf_event_header) + kSampleIdBytes) return event;
  // From the end: records have strings of any length in front of it.
  ByteReader sample_id(record.last(kSampleIdBytes));
  sample_id.Read<uint64_t>();  // pid, tid
  event.time_ns = sample_id.Read<uint64_t>();

  ByteReader reader(record.first(record.size() - kSampleIdBytes));
  perf_event_header header = {};
  header.type = reader.Read<uint32_t>();
  header.misc = reader.Read<uint16_t>();
  header.size = reader.Read<uint16_t>();
  switch (header.type) {
    case PERF_RECORD_KSYMBOL:
      event.report = ReadKernelSymbol(reader);
      break;
    case PERF_RECORD_FORK: {
      const auto ids = ReadIds(reader);
      if (IsOfThread(header, ids)) break;
      event.report = ForkReport{.parent = ids[1], .child = ids[0]};
      break;
    }
    case PERF_RECORD_COMM:
      if (IsOfThread(header, {})) break;
      event.report = ExecReport{reader.Read<uint32_t>()};
      break;
    case PERF_RECORD_MMAP2:
      event.report = ReadMap(reader);
      break;
    case PERF_RECORD_EXIT: {
      const auto ids = ReadIds(reader);
      if (IsOfThread(header, ids)) break;
      event.report = ExitReport{.pid = ids[0]};
      break;
    }
    case PERF_RECORD_LOST:
      reader.Read<uint64_t>();  // id
      event.report = LostReport{.count = reader.Read<uint64_t>(),
                                .until_ns = event.time_ns};
      break;
    default:
      break;
  }
  if (!reader.ok()) event.report = std::monostate();
  return event;
}

}  // namespace profd
