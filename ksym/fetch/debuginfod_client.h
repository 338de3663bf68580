// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ksym/base/keyed_hash.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"
#include "ksym/elf/byte_source.h"

namespace ksym {

// Fetches debug files by build-id from the servers of DEBUGINFOD_URLS, with
// elfutils' client library, libdebuginfod.so.1, which keeps what it downloads
// in its own cache (debuginfod-client-config(7)).
//
// The library is loaded when asked for and runs in a child process: a server
// that hangs, a resolver that blocks, or a download without end is ended by
// killing the child, which nothing else could be sure to do. Start it while
// the program has one thread and is small. Blocks its caller; not thread-safe.
class DebuginfodClient {
 public:
  struct Options {
    // For all requests together. When it is used up every request fails.
    std::chrono::milliseconds max_wait = std::chrono::seconds(10);
    // A larger file is not downloaded.
    uint64_t max_file_bytes = uint64_t{1} << 30;
  };

  // kInvalid: DEBUGINFOD_URLS is not set; kUnsupported: the library is not
  // there, or this program loads none; kIo: no process could be made.
  static Result<std::unique_ptr<DebuginfodClient>> Start(
      const Options& options);

  DebuginfodClient(const DebuginfodClient&) = delete;
  DebuginfodClient& operator=(const DebuginfodClient&) = delete;
  ~DebuginfodClient();

  // The debug file of this build-id (hex), open; its own build-id is the same.
  // Nobody is asked twice for what was not there.
  // kNotFound: no server has it; kCorrupt: what came is another file; kLimit:
  // the time is used up, or the file is too large; else as Error::FromErrno.
  Result<ByteSource> Find(const std::string& build_id);

  // A line for the user about each kind of failure of Find(), with the server,
  // how many files it cost, and the build-id of one; at most kMaxFailures.
  static constexpr size_t kMaxFailures = 16;
  std::vector<std::string> DescribeFailures() const;
  uint64_t files_found() const { return files_found_; }

 private:
  struct Answer;
  struct Failure {
    std::string message;
    std::string build_id;  // of the first file
    uint64_t files = 0;
  };

  DebuginfodClient(const Options& options, pid_t pid, UniqueFd socket)
      : options_(options),
        time_left_(options.max_wait),
        pid_(pid),
        socket_(std::move(socket)) {}

  static constexpr size_t kMaxRemembered = size_t{1} << 16;
  Result<ByteSource> Ask(const std::string& build_id);
  Result<Answer> Receive();
  void End();

  const Options options_;
  std::chrono::nanoseconds time_left_;
  pid_t pid_ = -1;  // -1: ended
  UniqueFd socket_;
  std::vector<Failure> failures_;
  std::unordered_set<std::string, TextHash> not_there_;  // build-ids
  uint64_t files_found_ = 0;
};

}  // namespace ksym
