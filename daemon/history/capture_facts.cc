// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/capture_facts.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace profd::history {
namespace {

constexpr size_t kMaxWarnings = 20;

void AddWarnings(std::string_view lines, std::vector<std::string>& warnings) {
  while (!lines.empty() && warnings.size() < kMaxWarnings) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (std::ranges::find(warnings, line) == warnings.end()) {
      warnings.emplace_back(line);
    }
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
}

}  // namespace

void AddCaptureFacts(const Tables& tables, const Part& part,
                     CaptureMetadata& metadata) {
  const Setting& setting = tables.settings[part.setting];
  const auto text = [&](uint32_t id) {
    return std::string(tables.strings.Get(id));
  };
  metadata.duration_ns += part.duration_ns;
  metadata.version = text(setting.version);
  metadata.hostname = text(setting.hostname);
  metadata.kernel_release = text(setting.kernel_release);
  metadata.architecture = text(setting.architecture);
  metadata.cpus = text(setting.cpus);
  metadata.stack_store = text(setting.stack_store);
  metadata.unwind = text(setting.unwind);
  metadata.max_stack_depth = setting.max_stack_depth;
  AddWarnings(tables.strings.Get(setting.warnings), metadata.warnings);
}

}  // namespace profd::history
