// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/labels/label_thread.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/service/counters.h"

namespace profd {

// Adds the samples of waits in it, and the time that they stand for.
void CountWaits(const RawProfile& raw, ServiceCounters& counters);
// Shows what became of waits in the capture that runs.
void ShowWaits(const WaitStatistics& now, ServiceCounters& counters);
// The same of the frames of language runtimes.
void ShowRuntimes(const RuntimeStatistics& runtimes, ServiceCounters& counters);
// What is known of containers and processes by other means than samples.
void ShowLabels(const LabelStatistics& labels, ServiceCounters& counters);

}  // namespace profd
