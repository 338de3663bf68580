#pragma once

#include "daemon/oneshot/debug_files.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/progress.h"
#include "daemon/profile/profile.h"
#include "ksym/symbolizer.h"

namespace profd {

// What is done about names when all samples are there: debug files are fetched
// with --debuginfod, and with --lines or --inlines debug data are read, each
// for --symbol-timeout at the most. What it was done without is a warning of
// the profile.
Profile FinishNames(Profile profile, const ProfileOptions& options,
                    ksym::Symbolizer& symbolizer, DebugFiles& debug_files,
                    Progress& progress);

}  // namespace profd
