// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/file_runtimes.h"

namespace ksym {

FileRuntimes FindRuntimes(const ByteSource& source, const ElfImage& image) {
  FileRuntimes found;
  if (auto cpython = FindCpython(source, image)) {
    found.cpython = *cpython;
  } else {
    found.refusals.push_back({"Python", cpython.error().message()});
  }
  found.hotspot = FindHotspot(source, image);
  return found;
}

}  // namespace ksym
