#include <linux/perf_event.h>

#include <string_view>
#include <utility>

#include "daemon/capture/side_band.h"
#include "ksym/base/byte_reader.h"

namespace profd {
namespace {

using ksym::ByteReader;

// What sample_id_all appends to each record for SAMPLE_TID | SAMPLE_TIME.
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

ForkReport ReadFork(ByteReader& reader) {
  ForkReport fork;
  fork.child = reader.Read<uint32_t>();
  fork.parent = reader.Read<uint32_t>();
  fork.thread = reader.Read<uint32_t>();
  return fork;
}

ExitReport ReadExit(ByteReader& reader) {
  ExitReport exit;
  exit.pid = reader.Read<uint32_t>();
  reader.Read<uint32_t>();  // the parent
  exit.thread = reader.Read<uint32_t>();
  return exit;
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

SideBandEvent ParseSideBandRecord(std::span<const std::byte> record) {
  SideBandEvent event;
  if (record.size() < sizeof(perf_event_header) + kSampleIdBytes) return event;
  ByteReader sample_id(record.last(kSampleIdBytes));
  sample_id.Read<uint64_t>();  // pid, tid
  event.time_ns = sample_id.Read<uint64_t>();

  ByteReader reader(record.first(record.size() - kSampleIdBytes));
  const auto type = reader.Read<uint32_t>();
  const auto misc = reader.Read<uint16_t>();
  reader.Read<uint16_t>();  // size
  switch (type) {
    case PERF_RECORD_KSYMBOL:
      event.report = ReadKernelSymbol(reader);
      break;
    case PERF_RECORD_FORK:
      event.report = ReadFork(reader);
      break;
    case PERF_RECORD_COMM:
      if ((misc & PERF_RECORD_MISC_COMM_EXEC) == 0) break;
      event.report = ExecReport{reader.Read<uint32_t>()};
      break;
    case PERF_RECORD_MMAP2:
      event.report = ReadMap(reader);
      break;
    case PERF_RECORD_EXIT:
      event.report = ReadExit(reader);
      break;
    case PERF_RECORD_LOST:
      reader.Read<uint64_t>();  // id
      event.report = LostReport{.count = reader.Read<uint64_t>()};
      break;
    default:
      break;
  }
  if (!reader.ok()) event.report = std::monostate();
  return event;
}

}  // namespace profd
