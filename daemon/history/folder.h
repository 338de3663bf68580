// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/history/layout.h"
#include "daemon/history/range_profile.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// The files of a history in that folder by sequence number. A journal whose
// segment is there as well is left out: its writer was about to remove it.
// kNotFound: there is no such folder. kLimit: there are too many.
ksym::Result<std::vector<FileName>> ListFiles(const std::string& folder);

// The bytes of one of them: of a regular file, not through a link.
ksym::Result<std::string> ReadHistoryFile(const std::string& folder,
                                          const FileName& name);

// Samples of a time, and what is known of it.
struct HistoryAnswer {
  // Its warnings say in words what follows.
  Profile profile;
  RangeCoverage coverage;
  uint64_t files = 0;       // that were read
  uint64_t bad_files = 0;   // that were not shown
  uint64_t torn_bytes = 0;  // of journals behind their last good record
};

// Reads what is wanted of a history, also while it is written or on another
// machine: each file is read whole, one at a time. A file that is damaged is
// left out and said. `max_bytes` bounds the profile. Fails where the folder
// cannot be read, holds no history, or the profile would be too large.
ksym::Result<HistoryAnswer> ReadRange(const std::string& folder,
                                      Selection selection, size_t max_bytes);

}  // namespace profd::history
