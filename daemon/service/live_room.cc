// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/live_room.h"

#include <map>
#include <utility>

namespace profd {

LiveRoom::Use::Use(LiveRoom& room, HttpClient client)
    : room_(room), client_(std::move(client)) {
  const std::lock_guard lock(room_.mutex_);
  room_.uses_.push_back(this);
}

LiveRoom::Use::~Use() {
  const std::lock_guard lock(room_.mutex_);
  room_.uses_.remove(this);
}

bool LiveRoom::Use::Set(size_t bytes) {
  const std::lock_guard lock(room_.mutex_);
  if (has_ended_) return false;
  bytes_ = bytes;
  while (room_.AllBytes() > room_.max_bytes_) room_.EndLargest();
  return !has_ended_;
}

size_t LiveRoom::AllBytes() const {
  size_t bytes = 0;
  for (const Use* use : uses_) bytes += use->bytes_;
  return bytes;
}

// The largest one of the client that has most. Requests are some dozens.
void LiveRoom::EndLargest() {
  std::map<HttpClient, size_t> of_clients;
  for (const Use* use : uses_) of_clients[use->client_] += use->bytes_;
  Use* largest = nullptr;
  for (Use* use : uses_) {
    if (largest == nullptr ||
        std::pair(of_clients[use->client_], use->bytes_) >
            std::pair(of_clients[largest->client_], largest->bytes_)) {
      largest = use;
    }
  }
  // Not counted from here on, as its own thread frees the memory only when it
  // calls again: others would be ended for the same bytes.
  largest->has_ended_ = true;
  largest->bytes_ = 0;
}

}  // namespace profd
