// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/naming.h"

#include <linux/capability.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "daemon/base/own_capabilities.h"

namespace profd {
namespace {

// Where the capabilities are there already, they are no cure.
std::string WhyNoPermission() {
  const uint64_t own = EffectiveCapabilities().value_or(0);
  if (!HasCapability(own, CAP_SYS_PTRACE) ||
      !HasCapability(own, CAP_DAC_READ_SEARCH)) {
    return "files of other users' processes could not be read: needs "
           "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
  }
  return "some files could not be read: their file system gives access to its "
         "owner only, not even to root (FUSE without allow_other), or a "
         "security module forbids it";
}

}  // namespace

void Naming::UseKernel(KernelNames kernel) {
  kernel_ = std::move(kernel);
  UseKernelNames(kernel_, resolver_);
}

void Naming::Begin(CaptureMetadata metadata) {
  metadata_ = std::move(metadata);
  metadata_.duration_ns = 0;
  accounting_ = {};
  builder_ = {};
}

bool Naming::Warn(std::string warning) {
  if (std::ranges::find(metadata_.warnings, warning) !=
      metadata_.warnings.end()) {
    return false;
  }
  metadata_.warnings.push_back(std::move(warning));
  return true;
}

std::vector<std::string> Naming::AddMetadata(const RawProfile& part) {
  // Durations add up. The figures of tables are since the start, so that those
  // of the latest part have all.
  metadata_.cpus = part.metadata.cpus;
  metadata_.duration_ns += part.metadata.duration_ns;
  metadata_.unwind_tables = part.metadata.unwind_tables;
  std::vector<std::string> fresh;
  for (const std::string& warning : part.metadata.warnings) {
    if (Warn(warning)) fresh.push_back(warning);
  }
  accounting_ += part.accounting;
  return fresh;
}

std::vector<std::string> Naming::Add(
    UserLookups& lookups, std::chrono::steady_clock::time_point taken) {
  const RawProfile& part = lookups.part();
  auto fresh = AddMetadata(part);
  // The kernel's symbols are those of this interval while its samples are
  // named.
  kernel_.BeginInterval(part, taken);
  resolver_.Add(part, lookups, builder_);
  kernel_.EndInterval(taken);
  return fresh;
}

std::vector<std::string> Naming::AddUnnamed(const RawProfile& part) {
  auto fresh = AddMetadata(part);
  // The changes count for later parts, whose samples are named.
  kernel_.BeginInterval(part);
  builder_.Add(part.accounting);
  kernel_.EndInterval();
  return fresh;
}

std::vector<std::string> Naming::TakeWarningsOfNames() {
  std::vector<std::string> warnings;
  if (builder_.HasFrameInFile(ksym::Unresolved::kNoPermission)) {
    warnings.push_back(WhyNoPermission());
  }
  if (ksym::Symbolizer* const symbolizer = symbols_.symbolizer()) {
    AddWarningsOf(*symbolizer, warnings);
  }
  std::erase_if(warnings,
                [this](const std::string& warning) { return !Warn(warning); });
  return warnings;
}

void Naming::AddWarningsOf(ksym::Symbolizer& symbolizer,
                           std::vector<std::string>& warnings) {
  const uint64_t closed = symbolizer.statistics().files_closed;
  if (closed != files_closed_) {
    warnings.push_back(std::to_string(closed - files_closed_) +
                       " mapped files were closed to open others; processes "
                       "that had ended by then may lack names (raise ulimit "
                       "-Hn)");
    files_closed_ = closed;
  }
  std::ranges::move(symbolizer.TakeWarnings(), std::back_inserter(warnings));
}

Profile Naming::Finish() {
  metadata_.kernel_table = kernel_.statistics();
  Profile profile = std::exchange(builder_, {}).Finish(metadata_);
  if (ksym::Symbolizer* const symbolizer = symbols_.symbolizer()) {
    profile.symbol_tables_evicted = symbolizer->statistics().files_evicted;
  }
  return profile;
}

}  // namespace profd
