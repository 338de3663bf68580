// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "daemon/service/counters.h"
#include "daemon/service/history_answers.h"
#include "daemon/service/http_message.h"
#include "daemon/service/labels.h"
#include "daemon/service/response_room.h"

namespace profd {

// The paths /api/history/...: what the history's files say of a time.
// docs/service.md has the table. Any thread, several at once: a query reads the
// files as they are, and asks nothing of who writes them.
class HistoryApi {
 public:
  // How long a query may take when it has its turn.
  static constexpr std::chrono::seconds kQueryWithin{20};

  // The counters live longer.
  explicit HistoryApi(ServiceCounters& counters) : counters_(counters) {}

  // Nothing is kept there from now on, if empty.
  void SetDirectory(std::string directory);
  bool is_on() const { return !directory().empty(); }

  // 404: there is no history, or nothing is known of the time. 400: the request
  // is not understood. 413: the answer would be too large, or would take too
  // long. 503: others are asking.
  HttpResponse Respond(const HttpRequest& request, const Labels& labels) const;

 private:
  class Query;

  std::string directory() const;

  ServiceCounters& counters_;
  mutable std::mutex mutex_;  // of directory_
  std::string directory_;
  mutable ResponseRoom room_{kHistoryRoom};
};

}  // namespace profd
