// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// One JSON document, one frame and one stack per line. Stacks name their
// frames by index into one table, root first, so that user frames followed by
// kernel frames are the whole stack. docs/formats.md describes the document
// and docs/profile.schema.json checks it. Addresses and offsets are strings
// ("0x1f"), because JSON's numbers hold 53 bits. Every text is valid UTF-8
// without control characters; see ksym::AppendPrintable.
void WriteJson(const Profile& profile, const OutputOptions& options,
               OutputBuffer& out);

// The object of one frame in that table.
std::string FrameJson(const Profile& profile, const Frame& frame,
                      const OutputOptions& options = {});

}  // namespace profd
