// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace ksym {

// Finds the files of programs that did not run here; see SymbolizerOptions.
class ProgramFiles {
 public:
  ProgramFiles() = default;
  ProgramFiles(const ProgramFiles&) = delete;
  ProgramFiles& operator=(const ProgramFiles&) = delete;
  virtual ~ProgramFiles() = default;

  // The file that was mapped, or an ELF file that has nothing but its segments
  // and its build-id, with which debug files are found. Fails as
  // OpenMappedFile does.
  virtual Result<OpenedFile> Open(const Mapping& mapping) = 0;
  // A debug file by its path on that machine; most are in kBuildIdDirectory.
  virtual Result<ByteSource> OpenDebugFile(const std::string& path) = 0;
};

}  // namespace ksym
