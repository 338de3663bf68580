#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "daemon/capture/side_band.h"
#include "ksym/process/process_history.h"
#include "ksym/process/process_image.h"

namespace profd {

// The address spaces of the sampled processes, also of those that are gone:
// what was there at the start is read from /proc once, the rest is told by the
// side band. /proc is read again only when an address turns up that a living
// process's known mappings lack, as reports can be lost.
class ProcessWatch {
 public:
  // Called for a sampled process at first sight and when it maps more files.
  using Observer = std::function<void(const ksym::ProcessImage&)>;
  explicit ProcessWatch(Observer observer) : observer_(std::move(observer)) {}

  // Reads the mappings of every process; some 20 us each. After the side band
  // was opened, so that nothing falls between.
  void ReadAll();
  // Reports, in the order of time.
  void Apply(SideBandEvent event);

  // A sample of the process was taken then; earlier reports were applied.
  void See(const ksym::ProcessId& id, uint64_t time_ns);
  // Tells the observer of mappings that came since it was last told.
  void TellObserver();

  struct Answer {
    ksym::ProcessId id;
    ksym::ProcessImage image;
    bool known = false;
  };
  // The process's address space, as it was when it was first seen and with
  // what it mapped since. `frames`: of one sample, leaf first. A sample taken
  // while its process is in execve may still have the old program's addresses:
  // then the answer is the address space before, with an id of its own.
  Answer Find(const ksym::ProcessId& id, std::span<const uint64_t> frames);

  // Forgets processes that ended before the interval that ends now did begin.
  void EndInterval(uint64_t end_ns);

 private:
  struct Bound {
    ksym::ProcessHistory::GenerationId generation = 0;
    uint64_t told_version = 0;  // of the mappings that the observer knows
    bool told = false;
    uint64_t read_in = 0;  // interval of the last reading of /proc
    uint64_t seen_in = 0;  // interval of the last sample
  };
  Bound& Bind(const ksym::ProcessId& id, uint64_t time_ns);
  void ReadAgain(const ksym::ProcessId& id, Bound& bound);

  Observer observer_;
  ksym::ProcessHistory history_;
  std::map<ksym::ProcessId, Bound> bound_;
  uint64_t interval_ = 1;
  uint64_t interval_begin_ns_ = 0;
};

}  // namespace profd
