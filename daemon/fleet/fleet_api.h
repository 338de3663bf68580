// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include "daemon/fleet/fleet.h"
#include "daemon/service/http_message.h"
#include "daemon/service/http_places.h"
#include "daemon/service/response_room.h"

namespace profd::fleet {

// What is answered at which path: the history's page, and /api/history/... for
// it as a service answers that of one machine; docs/fleet.md has the table. Any
// thread, several at once.
class FleetApi {
 public:
  // So many questions are put at once, and none is begun while answers of so
  // many bytes wait to be taken.
  static constexpr ResponseRoom::Bounds kRoom = {.makers = 2,
                                                 .bytes = size_t{32} << 20};
  static constexpr size_t kMaxAnswerBytes = size_t{48} << 20;
  // How long a question waits for its turn, and may take then.
  static constexpr std::chrono::seconds kTurnWithin{10};
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
  ResponseRoom room_{kRoom};
};

}  // namespace profd::fleet
