// SPDX-License-Identifier: Apache-2.0
#include "daemon/perf/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// No kernel has more; keeps "0-4000000000" from filling the memory.
constexpr uint32_t kMaxCpu = 65535;

}  // namespace

ksym::Result<CpuList> ParseCpuList(std::string_view text) {
  CpuList cpus;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.empty()) {
    return ksym::Fail(ksym::ErrorCode::kInvalid, "empty list of CPUs");
  }
  while (!text.empty()) {
    const bool ends_with_comma = text.back() == ',';
    const std::string_view part = ksym::TakeField(text, ',');
    std::string_view rest = part;
    const std::string_view first_text = ksym::TakeField(rest, '-');
    const auto first = ksym::ParseUnsigned<uint32_t>(first_text, 10);
    const auto last = part.find('-') == std::string_view::npos
                          ? first
                          : ksym::ParseUnsigned<uint32_t>(rest, 10);
    if (!first || !last || *last < *first || *last > kMaxCpu ||
        (text.empty() && ends_with_comma)) {
      return ksym::Fail(ksym::ErrorCode::kInvalid,
                        fmt::format("'{}' is not a CPU or a range of CPUs "
                                    "(such as 0-3,8)",
                                    part));
    }
    for (uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  std::ranges::sort(cpus);
  const auto repeated = std::ranges::unique(cpus);
  cpus.erase(repeated.begin(), repeated.end());
  return cpus;
}

std::string FormatCpuList(const CpuList& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end - i == 1 ? fmt::format("{}", cpus[i])
                         : fmt::format("{}-{}", cpus[i], cpus[end - 1]);
    i = end;
  }
  return text;
}

ksym::Result<CpuList> ReadOnlineCpus() {
  const auto text = ksym::ReadFile("/sys/devices/system/cpu/online", 1 << 16);
  if (!text) return ksym::Fail(text.error());
  return ParseCpuList(*text);
}

CpuList Intersect(const CpuList& a, const CpuList& b) {
  CpuList both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

}  // namespace profd
