// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/debug_files.h"

#include <string>
#include <utility>

#include "daemon/naming/resolve.h"

namespace profd {

ksym::Result<DebugFiles> DebugFiles::Prepare(const ProfileOptions& options) {
  DebugFiles files;
  if (!options.debuginfod) return files;
  auto client =
      ksym::DebuginfodClient::Start({.max_wait = options.symbol_timeout});
  if (!client) {
    return ksym::Fail(std::move(client.error()).WithContext("--debuginfod"));
  }
  files.client_ = std::move(*client);
  return files;
}

void DebugFiles::BeginFetching(ksym::Symbolizer& symbolizer, Profile& profile) {
  if (client_ == nullptr) return;
  symbolizer.SetDebugFileSource(
      [this](const std::string& build_id) { return client_->Find(build_id); });
  ResolveAgain(symbolizer, profile);
}

void DebugFiles::EndFetching(ksym::Symbolizer& symbolizer, Profile& profile) {
  if (client_ == nullptr) return;
  symbolizer.SetDebugFileSource(nullptr);
  for (std::string& line : client_->DescribeFailures()) {
    profile.metadata.warnings.push_back(std::move(line));
  }
}

}  // namespace profd
