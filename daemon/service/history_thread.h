// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "daemon/history/history_writer.h"
#include "daemon/profile/profile.h"
#include "daemon/service/blocking_queue.h"
#include "daemon/service/counters.h"

namespace profd {

// Keeps the history in a thread of its own: a disk may take seconds to say that
// the data is on it. A failure is counted and said, and tried again with the
// next interval. One thread gives.
class HistoryThread {
 public:
  struct Settings {
    std::string directory;  // empty: there is no history
    history::HistoryWriter::Limits limits;
  };
  // The counters must live longer.
  HistoryThread(Settings settings, ServiceCounters& counters);
  ~HistoryThread();  // waits for what was given

  // Takes a part of an interval. Never blocks; dropped and counted when too
  // many are waiting.
  void AddPart(std::shared_ptr<const Profile> part);
  // Has the parts since the last one written. Those of long intervals are
  // written every 10 seconds as well.
  void EndInterval();
  // For what is given from now on.
  void Configure(Settings settings);
  // Whether everything was written, or tried, before the deadline; nothing may
  // be given after it.
  bool Finish(std::chrono::steady_clock::time_point deadline);

 private:
  struct IntervalEnd {};
  using Task =
      std::variant<std::shared_ptr<const Profile>, IntervalEnd, Settings>;

  void Run();
  void Take(const Profile& part);
  void Commit();
  void TidyUp();
  void Close();
  bool HasWriter();
  void Note(const ksym::Status& written);
  void ShowCounts();

  ServiceCounters& counters_;
  BlockingQueue<Task> tasks_;
  // Whether anything is to be written, by the last settings given.
  std::atomic<bool> has_directory_;
  std::mutex mutex_;  // of done_
  std::condition_variable changed_;
  bool done_ = false;

  // Used by the thread only.
  Settings settings_;
  const history::Run run_;
  std::unique_ptr<history::HistoryWriter> writer_;  // null: not opened yet
  history::WriterCounts shown_;                     // of writer_, as counted
  bool failing_ = false;
  std::chrono::steady_clock::time_point committed_;  // last, or tried

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace profd
