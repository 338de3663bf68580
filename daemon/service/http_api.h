#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/output/format.h"
#include "daemon/service/answer_room.h"
#include "daemon/service/counters.h"
#include "daemon/service/http_client.h"
#include "daemon/service/http_places.h"
#include "daemon/service/labels.h"
#include "daemon/service/live_room.h"
#include "daemon/service/profile_hub.h"

namespace profd {

// A request that was understood and allowed, and what is answered.
struct HttpQuestion {
  std::string path;
  std::multimap<std::string, std::string> parameters;
  HttpClient client = {};
  // Whether the client has gone away; cheap, and for the asked thread only.
  std::function<bool()> is_gone = [] { return false; };
};
struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  bool is_refusal = false;  // there was no room for the request
  // What is free again when the answer has been taken.
  std::vector<std::shared_ptr<const void>> holds = {};
};

// What the service answers; docs/service.md has the table. Any thread, several
// at once; the counters and the hub must live longer.
class HttpApi {
 public:
  HttpApi(const ServiceCounters& counters, ProfileHub& hub)
      : counters_(counters), hub_(hub) {}

  // Answers that are made at once, and bytes of those that wait to be taken.
  static constexpr AnswerRoom::Bounds kRoom = {.makers = 2,
                                               .bytes = size_t{64} << 20};

  // What is put together for all clients of /debug/pprof/profile.
  static constexpr size_t kMostLiveBytes = size_t{64} << 20;

  // Blocks for as long as /debug/pprof/profile asks while the client is there,
  // for 20 s until there is room for an answer, and for as long as making one
  // takes. May throw.
  HttpAnswer Answer(const HttpQuestion& question) const;
  // For what is answered from now on.
  void SetLabels(const Labels& labels);

 private:
  HttpAnswer AnswerPlaced(const HttpQuestion& question) const;
  HttpAnswer Profile(const HttpQuestion& question) const;
  HttpAnswer RecentProfile(const HttpQuestion& question) const;
  HttpAnswer Make(const HttpQuestion& question, OutputFormat format,
                  const std::function<std::string()>& make) const;
  Labels labels() const;

  const ServiceCounters& counters_;
  ProfileHub& hub_;
  mutable std::mutex mutex_;  // of labels_
  Labels labels_;
  mutable HttpPlaces places_;
  mutable AnswerRoom room_{kRoom};
  mutable LiveRoom live_{kMostLiveBytes};
};

}  // namespace profd
