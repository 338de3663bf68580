// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace profd {

// Where a kernel module's functions are in its file. The kernel places each
// section of a module by itself, and says where only to root, so that code is
// found by its function's name. Where a module has several functions of one
// name, what is beside them tells which is meant. Immutable.
class ModuleSymbols {
 public:
  // `source` is a relocatable file, and is not kept. kNotFound: there are no
  // symbols; kCorrupt, kLimit.
  static ksym::Result<ModuleSymbols> Load(const ksym::ByteSource& source,
                                          const ksym::ElfImage& image);

  // Whether the kernel has a function of the module of that name there.
  using IsThere =
      std::function<bool(ksym::Address start, std::string_view name)>;
  // The address, as ElfImage gives them, of the code `offset` bytes behind
  // the start of the function of that name, which is at `start` in the kernel.
  // Nothing: there is none, or `offset` is not in its section, or several
  // could be meant.
  std::optional<ksym::ElfAddress> Find(std::string_view name,
                                       ksym::Address start, uint64_t offset,
                                       const IsThere& is_there) const;

  size_t size() const { return symbols_.size(); }

 private:
  struct Symbol {
    uint64_t start = 0;
    uint64_t section_start = 0;
    uint64_t section_end = 0;
    std::string_view name;     // of names_
    bool is_landmark = false;  // alone of its name, and at its address
  };

  ModuleSymbols() = default;
  ksym::Status ReadNames(const ksym::ByteSource& source,
                         const ksym::ElfImage& image,
                         const ksym::ElfSection& table);
  void Index();
  bool IsLandmarkThere(const Symbol& symbol, ksym::Address start,
                       const IsThere& is_there) const;

  std::vector<std::byte> names_;
  std::vector<Symbol> symbols_;  // by start
  std::unordered_map<std::string_view, std::vector<uint32_t>, ksym::TextHash>
      by_name_;
};

}  // namespace profd
