// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ksym/base/result.h"

namespace profd {

// The object that BTF is made for, and the kernel that it is made from.
struct BtfWanted {
  std::string kernel_build_id;  // in hex; empty: not known, nothing is kept
  std::span<const std::byte> object_btf;
};

// The build-id of the running kernel in hex; empty where it does not tell.
std::string RunningKernelBuildId();

// MinimalKernelBtf() for a BPF object, kept in that directory: taking it out of
// the kernel's whole BTF is 5 ms of each start. A file there is of one build of
// the kernel and one object, and has a checksum; a directory or a file that is
// of no use costs time only. An empty directory: nothing is kept.
ksym::Result<std::vector<std::byte>> CachedKernelBtf(
    const std::string& directory, const BtfWanted& wanted);

}  // namespace profd
