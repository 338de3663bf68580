// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/files/deferred_opener.h"
#include "daemon/files/file_child.h"
#include "ksym/process/file_opener.h"
#include "ksym/process/file_systems.h"

namespace profd {

// Opens local files at once, and others in a child process that may be given
// up: see FileSystems and FileChild. Thread-safe but for what is said.
class GuardedOpener final : public ksym::FileOpener, public DeferredOpener {
 public:
  // Without a child (null) other files are refused.
  explicit GuardedOpener(std::unique_ptr<FileChild> child)
      : child_(std::move(child)) {}

  // These wait for the child, up to kHoldPatience and kReadPatience.
  ksym::Result<ksym::OpenedFile> Hold(uint32_t pid,
                                      const ksym::Mapping& mapping) override;
  ksym::Result<ksym::OpenedFile> HoldOfHost(
      const ksym::Mapping& mapping) override;
  ksym::Status Open(ksym::OpenedFile& file) override;
  ksym::Result<ksym::OpenedFile> OpenPath(uint32_t pid, const std::string& path,
                                          ksym::Links links) override;
  uint64_t given_up() const override;
  std::vector<std::string> TakeWarnings() override;

  // Those of DeferredOpener wait for nothing.
  ksym::Result<ksym::OpenedFile> HoldLocal(
      uint32_t pid, const ksym::Mapping& mapping) override;
  uint64_t BeginOpening(uint32_t pid, const ksym::Mapping& mapping) override;
  std::optional<ksym::Result<ksym::OpenedFile>> TakeOpened(
      uint64_t id) override;
  void WaitForOpened(std::chrono::milliseconds time) const override;
  // See FileSystems.
  void Sweep() override { file_systems_.Sweep(); }

  static constexpr std::chrono::milliseconds kHoldPatience{1000};
  static constexpr std::chrono::milliseconds kReadPatience{1500};
  // The same for each step of BeginOpening().
  static constexpr std::chrono::milliseconds kOpeningPatience{5000};

 private:
  struct Opening {
    uint64_t request = 0;  // of the child
    bool is_held = false;
    std::string mapped_build_id;
  };

  uint64_t AskToRead(ksym::OpenedFile& held,
                     std::chrono::milliseconds patience);

  // A file that was not there a moment ago.
  struct Missing {
    ksym::Error error;
    std::chrono::steady_clock::time_point until;
  };
  using Path = std::pair<uint32_t, std::string>;
  static constexpr size_t kMaxMissing = 1024;
  static constexpr std::chrono::seconds kMissingFor{2};

  std::optional<ksym::Error> FindMissing(const Path& path);
  void Remember(const Path& path, const ksym::Error& error);

  ksym::FileSystems file_systems_;
  const std::unique_ptr<FileChild> child_;
  std::mutex mutex_;
  std::map<Path, Missing> missing_;  // guarded by mutex_
  // The one thread's alone.
  uint64_t last_opening_ = 0;
  std::map<uint64_t, Opening> openings_;
};

// An opener with a child of its own; without a child, and with `warning`, if
// there can be none. Call it while there is one thread and little memory.
std::shared_ptr<GuardedOpener> StartGuardedOpener(std::string& warning);

}  // namespace profd
