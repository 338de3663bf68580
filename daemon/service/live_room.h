// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <mutex>

#include "daemon/http/http_client.h"

namespace profd {

// Bounds the memory of what is being put together for clients that wait for
// it. The client that takes most ends when all together have too much, so that
// one with many requests harms itself. Thread-safe.
class LiveRoom {
 public:
  explicit LiveRoom(size_t max_bytes) : max_bytes_(max_bytes) {}

  // What one request takes, from its making on. It must not outlive the room.
  class Use {
   public:
    Use(LiveRoom& room, HttpClient client);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // It has so many bytes now. False: it must give them back and end. They do
    // not count any more; a request of another thread hears of that in its next
    // call.
    bool Set(size_t bytes);

   private:
    friend class LiveRoom;

    LiveRoom& room_;
    const HttpClient client_;
    // Guarded by the room's mutex.
    size_t bytes_ = 0;
    bool has_ended_ = false;
  };

 private:
  size_t AllBytes() const;
  void EndLargest();

  const size_t max_bytes_;
  std::mutex mutex_;  // of what follows
  std::list<Use*> uses_;
};

}  // namespace profd
