// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/file_runtimes.h"

#include "ksym/runtime/v8/engine.h"

namespace ksym {

FileRuntimes FindRuntimes(const ByteSource& source, const ElfImage& image) {
  FileRuntimes found;
  if (auto cpython = FindCpython(source, image)) {
    found.cpython = *cpython;
  } else {
    found.refusals.push_back({"Python", cpython.error().message()});
  }
  if (const auto v8 = FindV8(source, image)) {
    found.v8 = *v8;
  } else {
    found.refusals.push_back({"JavaScript", v8.error().message()});
  }
  found.hotspot = FindHotspot(source, image);
  return found;
}

}  // namespace ksym
