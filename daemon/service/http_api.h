// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "daemon/output/format.h"
#include "daemon/service/counters.h"
#include "daemon/service/history_api.h"
#include "daemon/service/http_message.h"
#include "daemon/service/http_places.h"
#include "daemon/service/labels.h"
#include "daemon/service/live_room.h"
#include "daemon/service/profile_hub.h"
#include "daemon/service/response_room.h"

namespace profd {

// The service's HTTP API; docs/service.md has the table. Any thread, several
// at once; the counters and the hub must live longer.
class HttpApi {
 public:
  HttpApi(ServiceCounters& counters, ProfileHub& hub)
      : counters_(counters), hub_(hub), history_(counters) {}

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
  // The directory of the history that is kept; empty: none.
  void SetHistory(const std::string& directory) {
    history_.SetDirectory(directory);
  }
  // Whether anybody may have what is at that path: pages without data.
  static bool IsPublic(std::string_view path);

 private:
  // All that is decided by a path; other paths are status 404.
  struct Route {
    std::string_view path;
    std::string_view usage = {};  // with its parameters; empty: it has none
    HttpKind kind = HttpKind::kQuick;
    HttpResponse (HttpApi::*respond)(const HttpRequest&) const = nullptr;
  };
  static const std::array<Route, 11> kRoutes;

  static HttpResponse NotFound();
  HttpResponse Metrics(const HttpRequest& request) const;
  HttpResponse Health(const HttpRequest& request) const;
  HttpResponse Version(const HttpRequest& request) const;
  HttpResponse Profile(const HttpRequest& request) const;
  HttpResponse RecentProfile(const HttpRequest& request) const;
  HttpResponse History(const HttpRequest& request) const;
  HttpResponse Make(
      const HttpRequest& request, OutputFormat format,
      const std::function<ksym::Result<std::string>()>& make) const;
  Labels labels() const;

  const ServiceCounters& counters_;
  ProfileHub& hub_;
  mutable std::mutex mutex_;  // of labels_
  Labels labels_;
  mutable HttpPlaces places_;
  mutable ResponseRoom room_{kRoom};
  mutable LiveRoom live_{kMaxLiveBytes};
  HistoryApi history_;
};

}  // namespace profd
