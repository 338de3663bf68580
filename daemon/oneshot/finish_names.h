#pragma once

#include "daemon/oneshot/debug_files.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/progress.h"
#include "daemon/profile/profile.h"
#include "ksym/symbolizer.h"

namespace profd {

// Where names come from, both borrowed.
struct NameSources {
  ksym::Symbolizer& symbolizer;
  DebugFiles& debug_files;
};

// What is done about names when all samples are there: debug files are fetched
// with --debuginfod, and with --lines or --inlines debug data are read, each
// for --symbol-timeout at the most. What it was done without is a warning of
// the profile.
Profile FinishNames(Profile profile, const ProfileOptions& options,
                    NameSources sources, Progress& progress);

}  // namespace profd
