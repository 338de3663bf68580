// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "daemon/naming/resolve.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/progress.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/profile/parked.h"
#include "daemon/profile/profile.h"
#include "daemon/raw/raw_file.h"
#include "ksym/base/result.h"
#include "ksym/symbolizer.h"

namespace profd {

// What a capture and a replay have in common.

ksym::SymbolizerOptions MakeSymbolizerOptions(
    const ProfileOptions& options, ksym::SymbolizerOptions::Files files,
    std::string vdso_image);
ResolveOptions MakeResolveOptions(const ProfileOptions& options);

// Finds the threads that are parked, and puts one frame in the place of their
// stacks unless the report is to show them or has a mark for them. Afterwards
// samples have tids only where they were asked for. Returns a line for the
// summary; empty: there are no such threads.
std::string ShowParked(std::span<const ThreadLife> lives,
                       const ProfileOptions& options, Profile& profile);

// Write the report, or the table of functions that takes its place at a
// terminal; a reader that went away is no failure.
ksym::Status WriteReport(const Profile& profile, const ProfileOptions& options,
                         ReportFile& file);
ksym::Status WriteMarkupReport(const RawCapture& capture,
                               const ProfileOptions& options, ReportFile& file);

// When everything else is said: "wrote FILE", and shows it with --open. That it
// cannot be shown is a warning.
void SayWritten(const ProfileOptions& options, const ReportFile& report,
                Progress& progress);

// Those after the first `said` ones.
void SayWarnings(const Profile& profile, size_t said, Progress& progress);

// The exit status of a report that was written.
int StatusOf(const Profile& profile, const ProfileOptions& options);

}  // namespace profd
