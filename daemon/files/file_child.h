// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/files/file_messages.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"
#include "ksym/base/warning_list.h"
#include "ksym/process/file_opener.h"

namespace profd {

// Opens and copies files on file systems that may not answer, in processes that
// are left behind if these do not: a thread that hangs in the kernel cannot be
// ended, and keeps its whole process from ending. Thread-safe.
//
// A request that is not answered in time is given up. From then on what is
// asked of the same file system is refused at once, as long as the worker hangs
// and for kPause at least; with kMaxGivenUp of those everything is.
class FileChild {
 public:
  using Clock = std::chrono::steady_clock;

  // Larger files are not copied, and not more than so many bytes of all copies
  // that are in use.
  static constexpr uint64_t kMaxFileBytes = uint64_t{128} << 20;
  static constexpr uint64_t kMaxBytes = uint64_t{128} << 20;
  // Requests that were given up and count, and those that are at work beside
  // them. Others wait for their turn.
  static constexpr size_t kMaxGivenUp = 8;
  static constexpr size_t kMaxAtWork = 4;
  // Requests that wait for their turn or for whoever takes the answer. More of
  // them are refused.
  static constexpr size_t kMaxAsked = 4096;
  static constexpr std::chrono::seconds kPause{10};

  // Forks, so call it while there is one thread and little memory. The child
  // works with `opener` (see ServeFileRequests()); null: a direct one.
  // kIo: there can be no child.
  static ksym::Result<std::unique_ptr<FileChild>> Start(
      std::shared_ptr<ksym::FileOpener> opener = nullptr);
  FileChild(const FileChild&) = delete;
  FileChild& operator=(const FileChild&) = delete;
  // Ends the child. Does not wait for workers that hang.
  ~FileChild();

  // Has something done within so much time; never waits. `request` has no id
  // yet, and of a kRead the file that was held. Returns the id for one Take()
  // that gives a result, or Wait().
  uint64_t Ask(FileRequest request, Clock::duration patience);
  // The answer; nothing: it is still to come. ETIMEDOUT: the file system does
  // not answer; EFBIG: a copy would be too large. Never waits.
  std::optional<ksym::Result<ksym::OpenedFile>> Take(uint64_t id);
  // The same, waits for as long as Ask() was told.
  ksym::Result<ksym::OpenedFile> Wait(uint64_t id);
  // Until something has come, for that long at the most.
  void WaitForNews(Clock::duration time) const;

  uint64_t given_up() const { return given_up_count_; }
  std::vector<std::string> TakeWarnings();
  // Bytes of the copies in use.
  uint64_t bytes() const { return *bytes_; }

 private:
  // The file systems that are told apart: by device, or, where a path leads,
  // by process.
  using FileSystem = std::pair<uint64_t, uint64_t>;
  struct Asked {
    FileRequest request;
    FileSystem of;
    Clock::time_point deadline;
    bool is_sent = false;
    std::shared_ptr<const void> room;
    std::optional<ksym::Result<ksym::OpenedFile>> answer;
  };
  struct GivenUp {
    FileSystem of;
    Clock::time_point until;
    bool has_ended = false;
  };

  FileChild(pid_t pid, ksym::UniqueFd socket);
  static FileSystem FileSystemOf(const FileRequest& request);
  std::optional<ksym::Error> Refusal(const Asked& asked);
  std::shared_ptr<const void> TakeRoom(uint64_t bytes);
  void Receive();
  void Answer(FileAnswer answer);
  void Send();
  void GiveUp(uint64_t id, const Asked& asked);
  void Fail(const ksym::Error& error);

  const pid_t pid_;
  const ksym::UniqueFd socket_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_;
  std::atomic<uint64_t> given_up_count_ = 0;

  std::mutex mutex_;  // of what follows
  uint64_t last_id_ = 0;
  std::map<uint64_t, Asked> asked_;
  std::map<uint64_t, GivenUp> given_up_;  // by id of a request
  size_t at_work_ = 0;                    // sent and not answered
  bool is_broken_ = false;
  ksym::WarningList warnings_;
};

}  // namespace profd
