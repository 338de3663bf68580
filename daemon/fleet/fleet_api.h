// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "daemon/fleet/fleet.h"
#include "daemon/service/history_answers.h"
#include "daemon/service/http_message.h"
#include "daemon/service/http_places.h"
#include "daemon/service/response_room.h"

namespace profd::fleet {

// Answers the history's page, and the paths /api/history/... that it asks, as a
// service answers those of one machine; docs/fleet.md has the table. Any
// thread, several at once.
class FleetApi {
 public:
  // How long a question may take when it has its turn.
  static constexpr std::chrono::seconds kAnswerWithin{25};

  // The fleet lives longer.
  explicit FleetApi(Fleet& fleet) : fleet_(fleet) {}

  // 400: the request is not understood. 404: there is no such path, or nothing
  // is known of the time. 413: the answer would be too large, or would take too
  // long. 502: the database fails. 503: others are asking.
  HttpResponse Respond(const HttpRequest& request);

 private:
  class Query;

  HttpResponse Answer(const HttpRequest& request);

  Fleet& fleet_;
  HttpPlaces places_;
  ResponseRoom room_{kHistoryRoom};
};

}  // namespace profd::fleet
