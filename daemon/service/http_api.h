#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "daemon/service/counters.h"
#include "daemon/service/labels.h"
#include "daemon/service/profile_hub.h"

namespace profd {

// A request that was understood and allowed, and what is answered.
struct HttpQuestion {
  std::string path;
  std::multimap<std::string, std::string> parameters;
};
struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// What the service answers; docs/service.md has the table. Any thread, several
// at once; the counters and the hub must live longer.
class HttpApi {
 public:
  HttpApi(const ServiceCounters& counters, ProfileHub& hub)
      : counters_(counters), hub_(hub) {}

  // Blocks for as long as /debug/pprof/profile asks, else for as long as
  // writing the answer takes.
  HttpAnswer Answer(const HttpQuestion& question) const;
  // For what is answered from now on.
  void SetLabels(const Labels& labels);

 private:
  HttpAnswer Profile(const HttpQuestion& question) const;
  HttpAnswer RecentProfile(const HttpQuestion& question) const;
  Labels labels() const;

  const ServiceCounters& counters_;
  ProfileHub& hub_;
  mutable std::mutex mutex_;  // of labels_
  Labels labels_;
};

}  // namespace profd
