#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "ksym/process/process_image.h"

namespace profd {

// The address spaces of the processes that are being sampled, read from
// /proc at first sight and again when an address turns up that they lack.
class ProcessWatch {
 public:
  using Observer = std::function<void(const ksym::ProcessImage&)>;
  explicit ProcessWatch(Observer observer) : observer_(std::move(observer)) {}

  // Reads the process's mappings unless they are known.
  void See(const ksym::ProcessId& id);
  // The image, read again (once per interval) if an address of `user_frames`
  // is in none of its mappings: the process has mapped something since. Null
  // when the process was gone before it could be read.
  const ksym::ProcessImage* ImageFor(const ksym::ProcessId& id,
                                     std::span<const uint64_t> user_frames);
  // Forgets processes that were in none of the last intervals.
  void EndInterval();

 private:
  struct Entry {
    ksym::ProcessImage image;
    bool readable = false;
    uint64_t read_in = 0;  // interval of the last read
    uint64_t seen_in = 0;  // interval of the last sample
  };
  void Read(const ksym::ProcessId& id, Entry& entry);

  Observer observer_;
  std::map<ksym::ProcessId, Entry> processes_;
  uint64_t interval_ = 1;
};

}  // namespace profd
