// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/naming/module_symbols.h"
#include "daemon/profile/mapped_object.h"
#include "ksym/base/result.h"
#include "ksym/symbolizer.h"

namespace profd {

// The build-id, in hex, of a kernel's image, which is the part "[kernel]", or
// of the module of that name; empty: it is not known.
using KernelBuildIds = std::function<std::string(std::string_view part)>;

// As the running kernel says below /sys, if it is of that release.
KernelBuildIds BuildIdsOfRunningKernel(std::string_view release,
                                       const std::string& root = "");
// As a capture says.
KernelBuildIds BuildIdsOfCapture(const std::vector<KernelPart>& parts);

// Where to look for the debug data of a kernel.
struct KernelDebugPlaces {
  std::string release;
  KernelBuildIds build_ids;
  std::string root = {};  // in front of all paths; for tests
};

// A kernel's image with debug data, and where it is linked to.
struct KernelDebugFile {
  ksym::Symbolizer::ProgramFile file;
  std::string path;
  std::string build_id;        // hex
  uint64_t text = 0;           // the address of _stext
  bool is_same_build = false;  // it has the build-id that it should have
};

// A kernel module's debug file: a relocatable file.
struct ModuleDebugFile {
  ksym::Symbolizer::ProgramFile file;
  std::string path;
  std::string build_id;  // hex
  ModuleSymbols symbols;
};

// Where distributions and builds put the image of a kernel release.
std::vector<std::string> KernelImagePaths(std::string_view release);

// Where they put a module's debug data, after the directory of build-ids:
// `path` is as modules.dep has it, "kernel/fs/ext4/ext4.ko". Last come the
// module itself, which has them in a kernel that was built here, and the one in
// the directory where it was built.
std::vector<std::string> ModulePaths(std::string_view release,
                                     std::string_view path);

// The first image with _stext and with the build-id that it should have; where
// that is not known, with any. kNotFound: there is none; kInvalid: all that
// there are belong to other builds of the release.
ksym::Result<KernelDebugFile> FindKernelDebugFile(
    const KernelDebugPlaces& places);

// The first file with DWARF and that build-id, which is in hex. kNotFound.
// Cost: some ten opens, and where the directory of build-ids does not have it
// the kernel's list of modules; without that all names below
// /usr/lib/debug/lib/modules/RELEASE are looked at.
ksym::Result<ModuleDebugFile> FindModuleDebugFile(
    const KernelDebugPlaces& places, std::string_view name,
    const std::string& build_id);

}  // namespace profd
