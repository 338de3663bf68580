// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/http_places.h"

#include <utility>

namespace profd {
namespace {

template <typename Counts, typename Key>
void GiveBack(Counts& counts, const Key& key) {
  const auto found = counts.find(key);
  if (--found->second == 0) counts.erase(found);
}

template <typename Counts, typename Key>
size_t CountOf(const Counts& counts, const Key& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

std::expected<HttpPlaces::Place, HttpPlaces::Refusal> HttpPlaces::Take(
    HttpKind kind, const HttpClient& client) {
  const Bounds bounds = BoundsOf(kind);
  const std::pair by_way(kind, client.way);
  const std::pair by_client(kind, client);
  const std::lock_guard lock(taken_->mutex);
  // Asked first: a client that has many hears that it is the cause.
  if (CountOf(taken_->of_client, by_client) >= bounds.of_client) {
    return std::unexpected(Refusal::kClientHasEnough);
  }
  if (CountOf(taken_->all, by_way) >= bounds.all) {
    return std::unexpected(Refusal::kAllTaken);
  }
  ++taken_->all[by_way];
  ++taken_->of_client[by_client];
  return Place(nullptr, [taken = taken_, by_way, by_client](const void*) {
    const std::lock_guard give_back(taken->mutex);
    GiveBack(taken->all, by_way);
    GiveBack(taken->of_client, by_client);
  });
}

}  // namespace profd
