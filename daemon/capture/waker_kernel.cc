// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/waker_kernel.h"

#include <fcntl.h>
#include <linux/btf.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/capture/kernel_btf_id.h"
#include "ksym/base/unique_fd.h"
#include "ksym/kernel/kallsyms_reader.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;

constexpr std::string_view kRunQueues = "runqueues";
constexpr std::string_view kPreemptCount = "__preempt_count";

// Numbers of the names that are looked for.
enum FoundOfWakers : uint8_t {
  kWakingType,
  kPerCpuSection,
  kQueueVariable,
  kCountVariable,
  kHotVariable,
  kHotType,
  kCountName
};

std::unexpected<ksym::Error> WakersUnsupported(const std::string& what) {
  return Fail(ErrorCode::kUnsupported,
              "--wakers: this kernel does not have " + what);
}

// Where preempt_count is among the per-CPU variables: by itself, or from Linux
// 6.2 to 6.14 in pcpu_hot.
ksym::Result<uint32_t> FindPreemptCount(const KernelBtf& btf,
                                        const std::vector<uint32_t>& ids) {
  if (ids[kCountVariable] != 0)
    return btf.OffsetInSection(ids[kPerCpuSection], ids[kCountVariable]);
  const auto hot = btf.OffsetInSection(ids[kPerCpuSection], ids[kHotVariable]);
  if (!hot) return hot;
  const auto member = btf.MemberOffset(ids[kHotType], ids[kCountName]);
  if (!member) return member;
  return *hot + *member;
}

// The same by the kernel's symbols; nothing: they are hidden, or not there.
std::optional<int64_t> OffsetBySymbols() {
  const ksym::UniqueFd fd(::open("/proc/kallsyms", O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::optional<uint64_t> queue;
  std::optional<uint64_t> count;
  ksym::KallsymsReport report;
  const auto read = ksym::ReadKallsyms(
      fd.get(), report, [&](const ksym::KallsymsLine& line) -> ksym::Status {
        // Both are in the kernel's own per-CPU section; a module may have
        // variables of these names.
        if (!line.module.empty()) return {};
        if (line.name == kRunQueues) queue = line.address.value;
        if (line.name == kPreemptCount) count = line.address.value;
        return {};
      });
  if (!read || !queue || !count || *queue == *count) return std::nullopt;
  return static_cast<int64_t>(*count - *queue);
}

}  // namespace

ksym::Result<WakerKernel> FindWakerKernel() {
  const auto btf = KernelBtf::Open();
  if (!btf) return WakersUnsupported("its types (CONFIG_DEBUG_INFO_BTF)");
  // In the order of FoundOfWakers.
  const KernelBtf::Name names[] = {{BTF_KIND_TYPEDEF, "btf_trace_sched_waking"},
                                   {BTF_KIND_DATASEC, ".data..percpu"},
                                   {BTF_KIND_VAR, kRunQueues},
                                   {BTF_KIND_VAR, kPreemptCount},
                                   {BTF_KIND_VAR, "pcpu_hot"},
                                   {BTF_KIND_STRUCT, "pcpu_hot"},
                                   {0, "preempt_count"}};
  const auto ids = btf->Find(names);
  if (!ids) return Fail(ids.error());
  if ((*ids)[kWakingType] == 0) {
    return WakersUnsupported("the tracepoint sched_waking");
  }
  WakerKernel kernel = {.waking_id = (*ids)[kWakingType]};
  const auto queue =
      btf->OffsetInSection((*ids)[kPerCpuSection], (*ids)[kQueueVariable]);
  const auto count = FindPreemptCount(*btf, *ids);
  if (queue && count) {
    kernel.count_offset = int64_t{*count} - int64_t{*queue};
    return kernel;
  }
  const auto offset = OffsetBySymbols();
  if (!offset) {
    return WakersUnsupported(
        "its per-CPU variables among its types or symbols, so nobody can tell "
        "whether an interrupt wakes a thread");
  }
  kernel.count_offset = *offset;
  return kernel;
}

}  // namespace profd
