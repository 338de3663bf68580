// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// A time of a history in place of a file: "DIRECTORY@FROM..TO", without a
// directory that of the service; TO may be missing, and is now then. FROM and
// TO are what ParseMoment() takes. A directory with files of a history stands
// for all of it.
struct HistoryInput {
  std::string directory;
  std::string from;  // empty: all of it
  std::string to;
};

// Nothing: it is a path of another kind. A file of that name goes first.
std::optional<HistoryInput> ParseHistoryInput(const std::string& path);

// kInvalid: the times are none. Fails as ReadRange() does (queries.h), and with
// kNotFound where nothing is known of the time. Takes up to 1 GiB.
ksym::Result<Profile> LoadHistoryInput(const HistoryInput& input);

}  // namespace profd
