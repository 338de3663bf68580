// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/naming/line_convert.h"
#include "ksym/gsym_cache.h"
#include "ksym/symbolizer.h"

namespace profd {

struct LineBuilderOptions {
  std::string cache_directory;
  uint64_t cache_bytes = uint64_t{1} << 30;
  uint64_t max_file_bytes = uint64_t{128} << 20;  // of a program, or its DWARF
};

// Makes GSYM files of programs in a thread of its own, one after the other,
// when no other thread wants the CPU, and puts them into the cache: for a
// service, which never waits for them. Lines that may not be kept there are not
// used. The functions are called on one thread.
class LineBuilder {
 public:
  enum class Outcome : uint8_t {
    kStored,
    kBare,       // without debug data
    kUntrusted,  // a file of it is another user's
    kFailed,
  };
  struct Done {
    std::string build_id;
    std::string path;
    Outcome outcome = Outcome::kFailed;
    std::string error;  // of kFailed
  };

  // A cache that cannot be used is an error of each file.
  explicit LineBuilder(LineBuilderOptions options);
  // Gives up what is being made: within one unit of the debug data.
  ~LineBuilder();
  LineBuilder(const LineBuilder&) = delete;
  LineBuilder& operator=(const LineBuilder&) = delete;

  // False: too many are waiting, and this one has to be asked for again. The
  // program's finder must not refer to what other threads change.
  bool Add(std::string_view build_id, std::string_view path,
           ksym::Symbolizer::ProgramFile program);
  // Files that are done with since the last call.
  std::vector<Done> TakeDone();

 private:
  struct Task {
    std::string build_id;
    std::string path;
    ksym::Symbolizer::ProgramFile program;
  };

  void Run();
  Done Make(const Task& task);
  std::optional<Task> Next();

  const LineBuilderOptions options_;
  std::optional<ksym::GsymCache> cache_;  // of the thread
  std::string cache_error_;               // of the thread
  std::atomic<bool> stop_ = false;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<Done> done_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace profd
