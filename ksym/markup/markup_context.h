// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "ksym/base/address.h"
#include "ksym/base/keyed_hash.h"

namespace ksym {

// A linked binary, as a `module` element of a log names it.
struct MarkupModule {
  uint64_t id = 0;
  std::string name;      // for people; may be empty
  std::string build_id;  // lower-case hex, never empty
};

// A part of a module in memory, as an `mmap` element of a log has it. Numbers
// come from the log: address + size may wrap, size may be 0.
struct MarkupMmap {
  Address address;
  uint64_t size = 0;
  const MarkupModule* module = nullptr;
  std::string mode;  // of "rwx", in lower case
  ElfAddress module_address;

  bool Contains(Address at) const {
    return address <= at && at < address + size;
  }
  Address last() const { return address + size - 1; }
  ElfAddress ToModule(Address at) const {
    return module_address + (at - address);
  }
  bool executable() const { return mode.ends_with('x'); }
};

// What the context elements of a log have said since its last reset: the
// modules and where they are in memory. Bounded: beyond that nothing is added,
// so that no log can take all memory. Not thread-safe.
class MarkupContext {
 public:
  static constexpr size_t kMaxModules = size_t{1} << 16;
  static constexpr size_t kMaxMmaps = size_t{1} << 18;

  bool empty() const { return modules_.empty() && mmaps_.empty(); }
  bool has_room_for_module() const { return modules_.size() < kMaxModules; }
  bool has_room_for_mmap() const { return mmaps_.size() < kMaxMmaps; }
  void Reset();

  // The pointers live until Reset.
  // Null: there is a module with that id already.
  const MarkupModule* AddModule(MarkupModule module);
  // Null: there is none.
  const MarkupModule* FindModule(uint64_t id) const;
  // Call only if FindOverlap has nothing. Where an empty region starts at the
  // same address already, that one stays and is returned. O(log mmaps).
  const MarkupMmap* AddMmap(MarkupMmap mmap);
  const MarkupMmap* FindOverlap(const MarkupMmap& mmap) const;
  const MarkupMmap* FindMmap(Address address) const;

 private:
  std::unordered_map<uint64_t, std::unique_ptr<MarkupModule>, NumberHash>
      modules_;
  std::map<Address, MarkupMmap> mmaps_;
};

}  // namespace ksym
