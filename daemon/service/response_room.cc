// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/response_room.h"

#include <algorithm>

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWaitForRoom(200);

}  // namespace

bool ResponseRoom::Enter(const std::function<bool()>& is_gone,
                         Clock::time_point deadline) {
  const auto has_room = [this] {
    return state_->makers < state_->bounds.makers &&
           state_->bytes < state_->bounds.bytes;
  };
  std::unique_lock lock(state_->mutex);
  while (!state_->changed.wait_until(
      lock, std::min(deadline, Clock::now() + kWaitForRoom), has_room)) {
    if (Clock::now() >= deadline || is_gone()) return false;
  }
  ++state_->makers;
  return true;
}

std::optional<ksym::Result<ResponseRoom::Made>> ResponseRoom::Make(
    const std::function<ksym::Result<std::string>()>& make,
    const std::function<bool()>& is_gone, Clock::time_point deadline) {
  if (!Enter(is_gone, deadline)) return std::nullopt;
  ksym::Result<std::string> body;
  try {
    body = make();
  } catch (...) {
    Leave(0);
    throw;
  }
  if (!body) {
    Leave(0);
    return ksym::Fail(std::move(body.error()));
  }
  // What the string occupies counts. There is no moment between in which it is
  // neither being made nor waiting.
  Leave(body->capacity());
  Held held(nullptr, [state = state_, size = body->capacity()](const void*) {
    const std::lock_guard lock(state->mutex);
    state->bytes -= size;
    state->changed.notify_all();
  });
  return Made{.body = *std::move(body), .held = std::move(held)};
}

void ResponseRoom::Leave(size_t made_bytes) {
  const std::lock_guard lock(state_->mutex);
  --state_->makers;
  state_->bytes += made_bytes;
  state_->changed.notify_all();
}

}  // namespace profd
