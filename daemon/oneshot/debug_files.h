// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "daemon/oneshot/options.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"
#include "ksym/fetch/debuginfod_client.h"
#include "ksym/symbolizer.h"

namespace profd {

// Fetches debug files for what has no name, if asked to, when a capture is
// over: a server may take seconds, and samples would be lost meanwhile.
class DebugFiles {
 public:
  // Starts the client, which shall be before anything large is there; does
  // nothing without --debuginfod.
  static ksym::Result<DebugFiles> Prepare(const ProfileOptions& options);

  // Names the frames whose files have symbols elsewhere. Until EndFetching()
  // whoever asks the symbolizer's files for debug files gets fetched ones too.
  // Blocks, for all requests together as long as --symbol-timeout says.
  void BeginFetching(ksym::Symbolizer& symbolizer, Profile& profile);
  // Adds a warning for each kind of failure.
  void EndFetching(ksym::Symbolizer& symbolizer, Profile& profile);

 private:
  std::unique_ptr<ksym::DebuginfodClient> client_;  // null: not asked for
};

}  // namespace profd
