// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Ring buffers of the CPUs into which programs write nothing but that there is
// something, so that the kernel sends the CPU an interrupt. Each takes 8 bytes.
class WaitBells {
 public:
  WaitBells() = default;
  // One for each possible CPU, in that map of maps.
  static ksym::Result<WaitBells> Make(int map_fd);
  WaitBells(WaitBells&&) noexcept = default;
  WaitBells& operator=(WaitBells&&) noexcept = default;

  // Makes room. Costs some nanoseconds for each CPU.
  void Empty();

 private:
  // A page of a ring.
  class Page {
   public:
    Page() = default;
    Page(uint64_t* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}
    Page(Page&& other) noexcept;
    Page& operator=(Page&& other) noexcept;
    ~Page();
    uint64_t* get() const { return memory_; }

   private:
    uint64_t* memory_ = nullptr;
    size_t bytes_ = 0;
  };
  struct Bell {
    Page consumed;  // up to where user space has read
    Page produced;  // up to where there is something
  };
  static ksym::Result<Bell> MakeBell(int map_fd, uint32_t cpu);

  std::vector<Bell> bells_;
};

}  // namespace profd
