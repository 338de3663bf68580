// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "daemon/profile/profile.h"
#include "daemon/service/blocking_queue.h"
#include "daemon/service/counters.h"
#include "daemon/service/labels.h"
#include "daemon/service/profile_files.h"

namespace profd {

// Writes profiles to files in a thread of its own: a disk may take seconds to
// say that the data is on it. A failure is counted and said, and the next
// profile is tried as if there had been none.
class FileWriter {
 public:
  struct Settings {
    std::string directory;  // empty: profiles are not written
    std::string format;     // "folded", "json" or "pprof"
    ProfileFiles::Limits limits;
    Labels labels;
  };
  // The counters must live longer.
  FileWriter(Settings settings, ServiceCounters& counters);
  ~FileWriter();  // waits for what was given

  // Never blocks; dropped and counted when too many are waiting.
  void Write(std::shared_ptr<const Profile> profile);
  // For what is given from now on.
  void Configure(Settings settings);
  // Whether everything was written, or tried, before the deadline; nothing
  // may be given after it.
  bool Finish(std::chrono::steady_clock::time_point deadline);

 private:
  using Task = std::variant<std::shared_ptr<const Profile>, Settings>;

  void Run();
  void WriteOne(const Profile& profile);
  ksym::Status TryWrite(const Profile& profile);

  ServiceCounters& counters_;
  BlockingQueue<Task> tasks_;
  std::mutex mutex_;  // of done_
  std::condition_variable changed_;
  bool done_ = false;

  // Used by the thread only.
  Settings settings_;
  std::optional<ProfileFiles> files_;  // empty: could not be opened yet
  bool failing_ = false;

  std::thread thread_;  // last: it uses all of the above
};

// Makes the directory if it is not there. An error names what is wrong.
ksym::Status PrepareDirectory(const std::string& directory);

}  // namespace profd
