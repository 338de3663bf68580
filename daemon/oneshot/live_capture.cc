// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/live_capture.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "daemon/files/guarded_opener.h"
#include "daemon/naming/naming.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/missing_ids.h"
#include "daemon/oneshot/unwind_options.h"

namespace profd {

void StartOpener(ProfileOptions& options) {
  std::string no_child;
  options.capture.opener = StartGuardedOpener(no_child);
  if (!no_child.empty() && !options.quiet) {
    PrintMessage("warning: " + no_child);
  }
}

ksym::Result<std::unique_ptr<Capture>> StartCapture(CaptureOptions& options,
                                                    PartNames& names) {
  options.on_process = [&names](const ksym::ProcessImage& image) {
    names.Pin(image);
  };
  options.cache_directory = CacheDirectory();
  auto capture = Capture::Start(options);
  if (!capture) return ksym::Fail(std::move(capture.error()));
  return std::make_unique<Capture>(std::move(*capture));
}

void SayStartWarnings(const CaptureMetadata& metadata,
                      const std::vector<uint32_t>& missing_ids,
                      PartNames& names, Progress& progress) {
  for (const std::string& warning : metadata.warnings) {
    progress.Say("warning: " + warning);
  }
  if (!missing_ids.empty()) names.Warn(MissingText(missing_ids));
}

void ExitIfBusy(int status, PartNames& names, const Capture* capture) {
  if (names.naming().symbols().is_given_up() ||
      (capture != nullptr && capture->IsBuildingTables())) {
    // _Exit() leaves what is buffered unwritten.
    std::fflush(nullptr);
    std::_Exit(status);
  }
}

}  // namespace profd
