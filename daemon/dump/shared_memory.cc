// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/shared_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// All processes' together; what is beyond it shares nothing.
constexpr size_t kMaxMapsRead = 64;

// "7f01-7f05 rw-s 00000000 00:01 1024   /dev/zero (deleted)".
std::optional<SharedMapping> ParseLine(std::string_view line) {
  const auto start =
      ksym::ParseUnsigned<uint64_t>(ksym::TakeField(line, '-'), 16);
  const auto end =
      ksym::ParseUnsigned<uint64_t>(ksym::TakeField(line, ' '), 16);
  const std::string_view rights = ksym::TakeField(line, ' ');
  const auto offset =
      ksym::ParseUnsigned<uint64_t>(ksym::TakeField(line, ' '), 16);
  const std::string_view device = ksym::TakeField(line, ' ');
  const auto inode =
      ksym::ParseUnsigned<uint64_t>(ksym::TakeField(line, ' '), 10);
  // Only what is marked s is shared (proc_pid_maps(5)).
  if (!start || !end || !offset || !inode || *start >= *end ||
      *offset > UINT64_MAX - (*end - *start) || rights.size() != 4 ||
      rights[3] != 's') {
    return std::nullopt;
  }
  return SharedMapping{.start = *start,
                       .end = *end,
                       .offset = *offset,
                       .device = device,
                       .inode = *inode};
}

}  // namespace

std::vector<SharedMapping> ParseSharedMappings(std::string_view maps) {
  std::vector<SharedMapping> mappings;
  while (!maps.empty()) {
    if (const auto mapping = ParseLine(ksym::TakeField(maps, '\n'))) {
      mappings.push_back(*mapping);
    }
  }
  return mappings;
}

bool HasByteOf(const std::vector<SharedMapping>& mine,
               const std::vector<SharedMapping>& others, uint64_t address) {
  const auto other = std::ranges::find_if(others, [&](const auto& mapping) {
    return address >= mapping.start && address < mapping.end;
  });
  if (other == others.end()) return false;
  const uint64_t offset = other->offset + (address - other->start);
  return std::ranges::any_of(mine, [&](const SharedMapping& mapping) {
    return mapping.inode == other->inode && mapping.device == other->device &&
           offset >= mapping.offset &&
           offset - mapping.offset < mapping.end - mapping.start;
  });
}

bool SharedMemory::AreShared(uint32_t pid, uint32_t other_pid,
                             uint64_t address) {
  const Process& mine = Read(pid);
  const Process& others = Read(other_pid);
  return HasByteOf(mine.mappings, others.mappings, address);
}

const SharedMemory::Process& SharedMemory::Read(uint32_t pid) {
  static const Process kNone;
  const auto known = processes_.find(pid);
  if (known != processes_.end()) return known->second;
  if (processes_.size() == kMaxMapsRead) return kNone;
  Process& process = processes_[pid];
  auto text =
      ksym::ReadFile("/proc/" + std::to_string(pid) + "/maps", kMaxMapsBytes);
  if (text) {
    process.text = std::move(*text);
    process.mappings = ParseSharedMappings(process.text);
  }
  return process;
}

}  // namespace profd
