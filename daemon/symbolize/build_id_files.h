// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "daemon/profile/mapped_object.h"
#include "ksym/base/result.h"
#include "ksym/program_files.h"

namespace profd {

// The ELF file that a mapped one is known to be without having it: its
// segments and its build-id. ksym::Symbolizer finds a debug file with it.
std::string MakeStandIn(const MappedObject& module);

// Finds the files of a capture by their build-ids, wherever it was taken:
// 1. DIR/.build-id/ab/cdef and DIR/.build-id/ab/cdef.debug in each directory,
// if
//    that has the program's code and not only its debug data;
// 2. the file at the path that it had, if it has the build-id;
// 3. a stand-in, whose debug file is looked for in the directories.
// Borrows the index. Not thread-safe.
class BuildIdFiles : public ksym::ProgramFiles {
 public:
  BuildIdFiles(const ModuleIndex& index, std::vector<std::string> directories);

  // kNotFound: the capture does not know the mapping's file.
  ksym::Result<ksym::OpenedFile> Open(const ksym::Mapping& mapping) override;
  ksym::Result<ksym::ByteSource> OpenDebugFile(
      const std::string& path) override;

 private:
  const ModuleIndex& index_;
  std::vector<std::string> directories_;
};

}  // namespace profd
