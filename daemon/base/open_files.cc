// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace profd {

size_t MaxMappedFiles(LimitOf limit) {
  constexpr rlim_t kMax = 8192;  // about 2 MB of the kernel's memory
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 256;
  const rlim_t allowed =
      limit == LimitOf::kHard ? files.rlim_max : files.rlim_cur;
  return static_cast<size_t>(std::min(allowed / 2, kMax));
}

}  // namespace profd
