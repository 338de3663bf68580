// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/profile_hub.h"

#include <utility>

#include "daemon/base/now_ns.h"

namespace profd {
namespace {

// A client that does not take its parts loses the oldest: two minutes, or so
// many bytes.
constexpr size_t kMaxParts = 120;
constexpr size_t kMaxPartBytes = size_t{32} << 20;

uint64_t EndOf(const Profile& profile) {
  return profile.metadata.start_unix_ns + profile.metadata.duration_ns;
}

}  // namespace

ProfileHub::Subscription::Subscription(ProfileHub& hub) : hub_(hub) {
  const std::lock_guard lock(hub_.mutex_);
  hub_.subscriptions_.push_back(this);
}

ProfileHub::Subscription::~Subscription() {
  const std::lock_guard lock(hub_.mutex_);
  hub_.subscriptions_.remove(this);
}

std::optional<ProfileHub::Shared> ProfileHub::Subscription::Next(
    std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(hub_.mutex_);
  hub_.changed_.wait_until(lock, deadline,
                           [this] { return hub_.closed_ || !parts_.empty(); });
  // Parts that came before the hub was closed are still given.
  if (parts_.empty()) return std::nullopt;
  return TakeFront();
}

ProfileHub::Shared ProfileHub::Subscription::TakeFront() {
  Shared part = std::move(parts_.front());
  parts_.pop_front();
  bytes_ -= part->memory_bytes();
  return part;
}

void ProfileHub::AddPart(const Shared& part) {
  const std::lock_guard lock(mutex_);
  for (Subscription* subscription : subscriptions_) {
    auto& parts = subscription->parts_;
    if (parts.size() == kMaxParts) subscription->TakeFront();
    // One part is kept however large it is: a client gets that or nothing.
    while (!parts.empty() &&
           subscription->bytes_ + part->memory_bytes() > kMaxPartBytes) {
      subscription->TakeFront();
    }
    parts.push_back(part);
    subscription->bytes_ += part->memory_bytes();
  }
  changed_.notify_all();
}

void ProfileHub::AddProfile(Shared profile) {
  const uint64_t bytes = profile->memory_bytes();
  const uint64_t end_unix_ns = EndOf(*profile);
  const std::lock_guard lock(mutex_);
  kept_bytes_ += bytes;
  recent_.push_back({std::move(profile), bytes, end_unix_ns});
  ForgetOld();
}

void ProfileHub::SetLimits(Limits limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
  ForgetOld();
}

// Under the mutex.
void ProfileHub::ForgetOld() {
  const auto is_old = [this](const Kept& kept) {
    return kept.end_unix_ns + limits_.seconds * kNsPerSecond <
           recent_.back().end_unix_ns;
  };
  while (!recent_.empty() &&
         (kept_bytes_ > limits_.bytes || is_old(recent_.front()))) {
    kept_bytes_ -= recent_.front().bytes;
    recent_.pop_front();
  }
}

std::vector<ProfileHub::Shared> ProfileHub::Recent(uint64_t from_unix_ns,
                                                   uint64_t until_unix_ns) {
  const std::lock_guard lock(mutex_);
  std::vector<Shared> found;
  for (const Kept& kept : recent_) {
    if (kept.profile->metadata.start_unix_ns < until_unix_ns &&
        kept.end_unix_ns > from_unix_ns) {
      found.push_back(kept.profile);
    }
  }
  return found;
}

void ProfileHub::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace profd
