// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "daemon/http/http_client.h"

namespace profd {

// What a request costs: each kind has places of its own, so that those who
// wait for ten minutes keep nobody from a quick answer.
enum class HttpKind : uint8_t {
  kQuick,    // is answered at once
  kLive,     // waits for what will be sampled
  kRecent,   // merges and formats what is in memory
  kHistory,  // reads files
  kPage,     // a file of the service's page: browsers ask for many at once
};

// How many requests are answered at once, by kind, way and client. A place is
// taken until the answer has been taken. Thread-safe.
class HttpPlaces {
 public:
  struct Bounds {
    size_t all = 0;  // that come by one way
    size_t of_client = 0;
  };
  static constexpr Bounds BoundsOf(HttpKind kind) {
    switch (kind) {
      case HttpKind::kQuick:
        return {.all = 16, .of_client = 8};
      case HttpKind::kLive:
        return {.all = 12, .of_client = 6};
      case HttpKind::kRecent:
        return {.all = 8, .of_client = 4};
      case HttpKind::kHistory:
        return {.all = 8, .of_client = 6};
      case HttpKind::kPage:
        return {.all = 16, .of_client = 8};
    }
    return {};
  }

  HttpPlaces() : taken_(std::make_shared<Taken>()) {}

  using Place = std::shared_ptr<const void>;  // free when nobody has it
  enum class Refusal : uint8_t { kAllTaken, kClientHasEnough };
  std::expected<Place, Refusal> Take(HttpKind kind, const HttpClient& client);

 private:
  struct Taken {
    std::mutex mutex;  // of what follows, which has no zeros
    std::map<std::pair<HttpKind, HttpWay>, size_t> all;
    std::map<std::pair<HttpKind, HttpClient>, size_t> of_client;
  };

  // Places may be given back later than this is destroyed.
  std::shared_ptr<Taken> taken_;
};

}  // namespace profd
