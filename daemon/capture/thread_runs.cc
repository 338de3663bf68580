// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/thread_runs.h"

#include <fmt/format.h>

#include <string_view>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {

std::optional<uint32_t> ReadThreadRuns(uint32_t tid) {
  const auto text = ksym::ReadFile(fmt::format("/proc/{}/schedstat", tid), 128);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  ksym::TakeField(rest, ' ');
  ksym::TakeField(rest, ' ');
  const auto runs = ksym::ParseUnsigned(ksym::TakeField(rest, '\n'), 10);
  if (!runs) return std::nullopt;
  return static_cast<uint32_t>(*runs);
}

}  // namespace profd
