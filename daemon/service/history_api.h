// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "daemon/history/queries.h"
#include "daemon/service/counters.h"
#include "daemon/service/http_message.h"
#include "daemon/service/labels.h"
#include "daemon/service/response_room.h"

namespace profd {

// The paths /api/history/...: what the history's files say of a time.
// docs/service.md has the table. Any thread, several at once: a query reads the
// files as they are, and asks nothing of who writes them.
class HistoryApi {
 public:
  // So many queries run at once, and none begins while answers of so many
  // bytes wait to be taken.
  static constexpr ResponseRoom::Bounds kHistoryRoom = {
      .makers = 2, .bytes = size_t{32} << 20};
  // An answer while it is put together; a query has a file beside it.
  static constexpr size_t kMaxAnswerBytes = size_t{48} << 20;
  // How long a query waits for its turn, and may take then.
  static constexpr std::chrono::seconds kTurnWithin{10};
  static constexpr std::chrono::seconds kQueryWithin{20};
  // A flame graph's nodes, if the request does not say; and at the most.
  static constexpr size_t kFlameNodes = 32'768;
  static constexpr size_t kMaxFlameNodes = 65'536;
  static constexpr size_t kMaxFunctionRows = 10'000;

  // The counters live longer.
  explicit HistoryApi(ServiceCounters& counters) : counters_(counters) {}

  // Nothing is kept there from now on, if empty.
  void SetFolder(std::string folder);
  bool is_on() const { return !folder().empty(); }

  // 404: there is no history, or nothing is known of the time. 400: the request
  // is not understood. 413: the answer would be too large, or would take too
  // long. 503: others are asking.
  HttpResponse Respond(const HttpRequest& request, const Labels& labels) const;

 private:
  class Query;

  std::string folder() const;

  ServiceCounters& counters_;
  mutable std::mutex mutex_;  // of folder_
  std::string folder_;
  mutable ResponseRoom room_{kHistoryRoom};
};

}  // namespace profd
