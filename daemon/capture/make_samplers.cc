// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/make_samplers.h"

#include <memory>
#include <utility>

#include "daemon/capture/cpu_events.h"
#include "daemon/capture/cpu_sampler.h"
#include "daemon/capture/dump_sampler.h"
#include "daemon/capture/wait_sampler.h"

namespace profd {
namespace {

using ksym::Fail;

std::unique_ptr<Sampler> MakeCpuSampler(const CaptureOptions& options,
                                        const EventSpec& event,
                                        BpfObject& object) {
  CpuEvents events(
      event, options.rate,
      options.bpf.include_idle ? IdleSamples::kInclude : IdleSamples::kExclude,
      options.cpus, object.program_fd());
  return std::make_unique<CpuSampler>(
      object, std::move(events),
      EventKind(event.name, options.rate.frequency_hz,
                options.rate.count_period));
}

}  // namespace

ksym::Result<Samplers> MakeSamplers(const CaptureOptions& options,
                                    const std::optional<EventSpec>& event,
                                    BpfObject& object) {
  Samplers samplers;
  ksym::Status added;
  // The CPU's comes first: its kind is 0, and the kinds of waits or of a dump
  // follow (Capture::Impl::KindOf()).
  if (event) added = samplers.Add(MakeCpuSampler(options, *event, object));
  if (options.bpf.waits) {
    // The object has one set of counters. Two samplers that told them would
    // have them twice in the sum.
    auto waits = WaitSampler::Make(object, *options.bpf.waits,
                                   event ? WaitSampler::Counters::kByAnother
                                         : WaitSampler::Counters::kTold);
    if (!waits) return Fail(std::move(waits.error()));
    if (added) added = samplers.Add(std::move(*waits));
  }
  if (!added) return Fail(std::move(added.error()));
  if (options.bpf.dump != ThreadDump::kNone) {
    added = samplers.Add(std::make_unique<DumpSampler>(object));
    if (!added) return Fail(std::move(added.error()));
  }
  for (const SamplerMaker& make : options.more_samplers) {
    auto sampler = make(object);
    if (!sampler) return Fail(std::move(sampler.error()));
    added = samplers.Add(std::move(*sampler));
    if (!added) return Fail(std::move(added.error()));
  }
  return samplers;
}

}  // namespace profd
