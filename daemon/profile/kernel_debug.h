#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/symbolizer.h"

namespace profd {

// A kernel's image with debug data, and where it is linked to.
struct KernelDebugFile {
  ksym::Symbolizer::ProgramFile file;
  std::string path;
  std::string build_id;               // hex
  uint64_t text = 0;                  // the address of _stext
  bool is_of_running_kernel = false;  // whose build-id it has
};

// Where distributions and builds put the image of a kernel release.
std::vector<std::string> KernelImagePaths(std::string_view release);

// The first of the paths that is an image with _stext and a build-id; if the
// running kernel is of that release, with the running kernel's (`notes_path`
// is /sys/kernel/notes, but in tests). kNotFound: there is none; kInvalid: all
// that there are belong to other builds of the release.
ksym::Result<KernelDebugFile> FindKernelDebugFile(
    std::string_view release, const std::vector<std::string>& paths,
    const std::string& notes_path);

}  // namespace profd
