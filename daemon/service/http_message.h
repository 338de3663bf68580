// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/http/http_client.h"
#include "ksym/base/result.h"

namespace profd {

// Rights of a page that comes as an answer (Content-Security-Policy): nothing
// at all; what it says itself, as flame graphs do; or with the files of the
// service's own pages.
inline constexpr std::string_view kNoPage =
    "default-src 'none'; frame-ancestors 'none'";
inline constexpr std::string_view kOwnPolicyPage = "frame-ancestors 'none'";
inline constexpr std::string_view kServicePage =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; base-uri "
    "'none'; form-action 'none'";

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
  // They are free again when the response has been taken.
  std::vector<std::shared_ptr<const void>> holds = {};
  std::string_view policy = kNoPage;
};

// The answer to a wrong request: go tool pprof shows the body to its user.
// Where no answer can be made, for one of these reasons.
inline HttpResponse ResponseFor(const ksym::Error& error) {
  using enum ksym::ErrorCode;
  const int status = error.code() == kNotFound  ? 404
                     : error.code() == kLimit   ? 413
                     : error.code() == kInvalid ? 400
                                                : 500;
  return {.status = status, .body = error.message() + "\n"};
}

inline HttpResponse BadRequest(std::string why) {
  return {.status = 400, .body = std::move(why) + "\n"};
}

}  // namespace profd
