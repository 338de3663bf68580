// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>

#include "daemon/naming/held_parts.h"
#include "daemon/naming/kernel_names.h"
#include "daemon/naming/line_builder.h"
#include "daemon/naming/line_files.h"
#include "daemon/naming/naming.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/profile_merge.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/service/counters.h"

namespace profd {

// Names what the capture drains in a thread of its own, so that reading a
// large program's symbols never keeps the capture from emptying its ring.
// What is given is never waited for: over the bounds it is dropped, counted
// and said. One thread gives.
class NamingThread {
 public:
  struct Settings {
    uint64_t cache_bytes = 0;
    bool demangle = true;
    // Lines and inlined calls are of files that are made in the background and
    // kept in that directory; without one there are none.
    bool lines = false;
    bool inlines = false;
    std::string line_directory;
    uint64_t line_bytes = 0;
    // Opens the files of processes; null: they are opened at once.
    std::shared_ptr<ksym::FileOpener> opener = {};

    bool wants_lines() const {
      return (lines || inlines) && !line_directory.empty();
    }
    friend bool operator==(const Settings&, const Settings&) = default;
  };
  // They get what is named, in the thread.
  struct Sinks {
    // Each part by itself.
    std::function<void(const std::shared_ptr<const Profile>&)> part;
    // Each finished profile.
    std::function<void(const std::shared_ptr<const Profile>&)> profile;
  };
  // How the parts make profiles: the one with kEnd is the last of its profile.
  enum class Edge : uint8_t { kGoOn, kEnd };

  // The counters must live longer. How the kernel's table is read is for tests
  // to change; it is given up by Finish().
  NamingThread(Settings settings, ServiceCounters& counters, Sinks sinks,
               KernelReading kernel = {});
  // Waits until everything that was given is named.
  ~NamingThread();

  // Opens the files of a process that was just sampled, before parts that
  // were given earlier: it may end at any moment.
  void Pin(const ksym::ProcessImage& image);
  void Add(RawProfile part, Edge edge);
  // From the next profile on.
  void Configure(Settings settings);
  // Whether everything was passed on before the deadline; nothing may be given
  // after it. The kernel's table is not read again for it, and if it was not
  // read at all a third of the time is left for that. User names that are not
  // found within two thirds have the reason kNotInTime.
  bool Finish(std::chrono::steady_clock::time_point deadline);
  // How long it has been at work on one part; zero when it is idle.
  std::chrono::nanoseconds BusyFor() const;
  // Whether threads of hanging symbolizers may outlive it.
  bool left_threads() const { return given_up_ > 0; }

 private:
  struct Part {
    RawProfile raw;
    Edge edge = Edge::kGoOn;
    std::chrono::steady_clock::time_point taken;
    size_t bytes = 0;  // about, when it was given
  };
  // That held_ is to be named.
  struct HeldIsDue {};
  using Task = std::variant<ksym::ProcessImage, Part, Settings, HeldIsDue>;

  void Run();
  std::optional<Task> Next();
  bool HasTask() const;
  void Take(Part part);
  void NameHeld();
  void Begin(const Settings& settings);
  void Name(HeldParts::Part part);
  void PassImagesOn();
  void AwaitSymbols();
  bool MayGiveUp(std::chrono::steady_clock::time_point begin) const;
  void BeginLines();
  void AddLines(Profile& profile);
  void FinishProfile();
  void ShowStatistics();

  ServiceCounters& counters_;
  const Sinks sinks_;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<ksym::ProcessImage> images_;
  size_t image_mappings_ = 0;  // of all images
  std::deque<Part> parts_;
  size_t part_bytes_ = 0;  // of all parts
  std::optional<Settings> new_settings_;
  bool closed_ = false;
  bool done_ = false;

  // Symbolizers that hung; of each a thread is left.
  std::atomic<unsigned> given_up_ = 0;
  std::atomic<int64_t> busy_since_ns_ = 0;  // of the steady clock; 0: idle
  std::stop_source give_up_first_reading_;
  std::stop_source give_up_later_readings_;
  std::stop_source give_up_symbols_;

  // Used by the thread only.
  Settings settings_;
  KernelReading kernel_;
  std::unique_ptr<Naming> naming_;
  std::unique_ptr<LineBuilder> line_builder_;  // null: no lines are wanted
  std::unique_ptr<LineFiles> line_files_;      // borrows the two above
  LineFileCounts line_counts_;                 // of line_files_, as shown
  std::unique_ptr<ProfileMerger> merger_;      // of parts since the last end
  HeldParts held_;
  std::chrono::steady_clock::time_point held_until_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace profd
