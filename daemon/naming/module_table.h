// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/profile/mapped_object.h"
#include "ksym/process/file_opener.h"
#include "ksym/process/process_image.h"

namespace profd {

// Reads the headers of the files that sampled processes map: build-ids and
// where code is, no symbols. Not thread-safe.
class ModuleTable {
 public:
  // Takes in the image's files that were not seen before, through the process
  // while it lives. Cost: some 20 us per new file, a lookup per known one.
  void Add(const ksym::ProcessImage& image, ksym::FileOpener& opener);

  // Those with a build-id so far, in the order of their keys.
  std::vector<MappedObject> Modules() const;

 private:
  struct Entry {
    MappedObject module;
    bool is_done = false;  // read, or never will be
    uint32_t failures = 0;
  };

  std::map<ModuleKey, Entry> entries_;
};

// The kernel's text and its loaded modules, as far as the system shows where
// they are and which build-ids they have. Reads /proc/kallsyms up to `_etext`,
// about 20 ms.
std::vector<KernelPart> ReadKernelParts();

}  // namespace profd
