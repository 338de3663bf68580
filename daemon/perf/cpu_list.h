// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"

namespace profd {

// CPU numbers, ascending, each once.
using CpuList = std::vector<uint32_t>;

// Parses "0-3,8,10-11", the form of /sys/devices/system/cpu/online and of
// --cpu; see cpuset(7), "List format". kInvalid names the offending part.
ksym::Result<CpuList> ParseCpuList(std::string_view text);
// The inverse, with ranges as long as possible.
std::string FormatCpuList(const CpuList& cpus);

// The CPUs that are online now.
ksym::Result<CpuList> ReadOnlineCpus();

// Members of both.
CpuList Intersect(const CpuList& a, const CpuList& b);

}  // namespace profd
