// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// The number of the running kernel's function of that name among its types,
// which a BPF program is loaded with that is attached to it. libbpf would read
// all types into memory for that. Reads /sys/kernel/btf/vmlinux once: 5 ms.
// kNotFound: the kernel has none, or no types.
ksym::Result<uint32_t> KernelBtfFunction(std::string_view name);

}  // namespace profd
