// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "daemon/http/http_client.h"
#include "daemon/service/http_message.h"

namespace profd {

// A request that has arrived, up to its empty line, on a socket that takes the
// answer.
struct HttpRequestBytes {
  int fd = -1;  // borrowed
  HttpClient client;
  std::string head;
};

// How the server was asked to answer it.
struct HttpTerms {
  std::string token;            // that the request must have; empty: none
  bool wants_own_host = false;  // also with a token: see HttpServer::Settings
  // Says which paths anybody may have without it.
  const std::function<bool(std::string_view path)>& is_public;
  const std::function<HttpResponse(const HttpRequest&)>& answer;
};

enum class HttpOutcome : uint8_t { kAnswered, kRefused };

// Reads the request, has it answered and sends the answer, which the client
// has 30 seconds to take. Only the request's first line, Host and
// Authorization are looked at: there are no ranges, no compression and no
// bodies. What `answer` throws becomes status 500.
HttpOutcome Exchange(const HttpRequestBytes& request, const HttpTerms& terms);

}  // namespace profd
