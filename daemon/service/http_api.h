// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/format.h"
#include "daemon/service/counters.h"
#include "daemon/service/http_client.h"
#include "daemon/service/http_places.h"
#include "daemon/service/labels.h"
#include "daemon/service/live_room.h"
#include "daemon/service/profile_hub.h"
#include "daemon/service/response_room.h"

namespace profd {

// A request that was understood and allowed, and what it gets.
struct HttpRequest {
  std::string path;
  std::multimap<std::string, std::string> parameters;
  HttpClient client = {};
  // Whether the client has gone away; cheap, and for the asked thread only.
  std::function<bool()> is_gone = [] { return false; };
};
struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  bool is_refusal = false;  // there was no room for the request
  // What is free again when the response has been taken.
  std::vector<std::shared_ptr<const void>> holds = {};
};

// The service's HTTP API; docs/service.md has the table. Any thread, several
// at once; the counters and the hub must live longer.
class HttpApi {
 public:
  HttpApi(const ServiceCounters& counters, ProfileHub& hub)
      : counters_(counters), hub_(hub) {}

  // Answers that are made at once, and bytes of those that wait to be taken.
  static constexpr ResponseRoom::Bounds kRoom = {.makers = 2,
                                                 .bytes = size_t{64} << 20};

  // What is put together for all clients of /debug/pprof/profile.
  static constexpr size_t kMaxLiveBytes = size_t{64} << 20;

  // Blocks for as long as /debug/pprof/profile asks while the client is there,
  // for 20 s until there is room for an response, and for as long as making one
  // takes. May throw.
  HttpResponse Respond(const HttpRequest& request) const;
  // For what is answered from now on.
  void SetLabels(const Labels& labels);

 private:
  // All that is decided by a path; other paths are status 404.
  struct Route {
    std::string_view path;
    std::string_view usage = {};  // with its parameters; empty: it has none
    HttpKind kind = HttpKind::kQuick;
    HttpResponse (HttpApi::*respond)(const HttpRequest&) const = nullptr;
  };
  static const std::array<Route, 5> kRoutes;

  static HttpResponse NotFound();
  HttpResponse Metrics(const HttpRequest& request) const;
  HttpResponse Health(const HttpRequest& request) const;
  HttpResponse Version(const HttpRequest& request) const;
  HttpResponse Profile(const HttpRequest& request) const;
  HttpResponse RecentProfile(const HttpRequest& request) const;
  HttpResponse Make(const HttpRequest& request, OutputFormat format,
                    const std::function<std::string()>& make) const;
  Labels labels() const;

  const ServiceCounters& counters_;
  ProfileHub& hub_;
  mutable std::mutex mutex_;  // of labels_
  Labels labels_;
  mutable HttpPlaces places_;
  mutable ResponseRoom room_{kRoom};
  mutable LiveRoom live_{kMaxLiveBytes};
};

}  // namespace profd
