// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/naming/kernel_debug.h"
#include "daemon/oneshot/debug_files.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/progress.h"
#include "daemon/profile/profile.h"
#include "ksym/kernel/kernel_timeline.h"
#include "ksym/symbolizer.h"

namespace profd {

// Where names come from, borrowed.
struct NameSources {
  ksym::Symbolizer* symbolizer = nullptr;  // null: nobody may ask it
  DebugFiles& debug_files;
  const ksym::KernelTimeline* kernel = nullptr;  // null: no kernel symbols
  KernelBuildIds kernel_build_ids = {};  // of the kernel that was sampled
};

// What is done about names when all samples are there: debug files are fetched
// with --debuginfod, and with --lines or --inlines debug data are read, each
// for --symbol-timeout at the most. What it was done without is a warning of
// the profile.
Profile FinishNames(Profile profile, const ProfileOptions& options,
                    NameSources sources, Progress& progress);

}  // namespace profd
