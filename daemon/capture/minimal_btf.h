// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ksym/base/result.h"

namespace profd {

// Names of the structs, and of their members, that a BPF object relocates.
using WantedTypes = std::map<std::string, std::set<std::string>>;

// The structs that a BPF object's own BTF defines (Documentation/bpf/btf.rst).
// A "___flavor" suffix is cut off and its members join the plain name's.
// Structs that the kernel does not have do no harm.
WantedTypes StructsOfObject(std::span<const std::byte> object_btf);

// A BTF with just those structs and members, taken from the whole BTF behind
// the descriptor (read in blocks) or in memory. libbpf relocates against it as
// it would against the whole, whose 5 MB it keeps in memory twice; this keeps
// 4 bytes per type while it runs. Members of anonymous structs and unions are
// lifted into the named struct around them, where CO-RE looks for them anyway.
// kCorrupt, kUnsupported: use the whole.
ksym::Result<std::vector<std::byte>> MinimalBtf(int btf_fd,
                                                const WantedTypes& wanted);
ksym::Result<std::vector<std::byte>> MinimalBtf(std::span<const std::byte> btf,
                                                const WantedTypes& wanted);

// The same of the running kernel's, which is mapped where the kernel allows
// that (6.16): it copies one page per read, and there are a thousand.
ksym::Result<std::vector<std::byte>> MinimalKernelBtf(
    const WantedTypes& wanted);

}  // namespace profd
