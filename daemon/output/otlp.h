// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/output/options.h"
#include "daemon/profile/profile.h"

namespace profd {

// OpenTelemetry's ProfilesData (profiles/v1development of
// github.com/open-telemetry/opentelemetry-proto, version 1.11), not compressed,
// as docs/formats.md describes its use here; the bytes are those of an
// ExportProfilesServiceRequest as well. A resource per container, or systemd
// unit, a profile per kind of samples in it. Options: `by` (thread ids),
// `labels`. Memory: twice the result.
std::string RenderOtlp(const Profile& profile, const OutputOptions& options);

}  // namespace profd
