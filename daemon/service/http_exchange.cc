// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/http_exchange.h"

#include <httplib.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

#include "daemon/http/http_host.h"
#include "daemon/http/http_request_stream.h"
#include "daemon/http/http_token.h"

namespace profd {
namespace {

std::string NameOfMachine() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// A client that has sent an end of file, though it may still read, counts as
// one that went away: nobody who waits for minutes does so.
bool IsGone(int fd) {
  pollfd entry = {.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

// httplib's parser of requests and writer of responses, without its sockets:
// those it has know neither Unix sockets nor bounds on clients and time.
class Protocol : public httplib::Server {
 public:
  Protocol(const HttpRequestBytes& request, const HttpTerms& terms)
      : request_(request), terms_(terms) {
    set_pre_routing_handler(
        [this](const httplib::Request& parsed, httplib::Response& response) {
          Handle(parsed, response);
          return HandlerResponse::Handled;
        });
  }

  HttpOutcome Serve() {
    HttpRequestStream stream(request_.fd, request_.head);
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, nullptr);
    return answer_.is_refusal ? HttpOutcome::kRefused : HttpOutcome::kAnswered;
  }

 private:
  void Handle(const httplib::Request& parsed, httplib::Response& response) {
    try {
      answer_ = AnswerTo(parsed);
    } catch (...) {
      answer_ = {.status = 500, .body = "this request failed\n"};
    }
    response.status = answer_.status;
    // go tool pprof shows the body of an error that has it.
    if (answer_.status != 200) response.set_header("X-Go-Pprof", "1");
    if (answer_.status == 401) {
      response.set_header("WWW-Authenticate", "Bearer");
    }
    response.set_header("Content-Type", answer_.content_type);
    SetPageHeaders(response);
    response.body = std::move(answer_.body);
  }

  // Other sites' pages get nothing, and what is no page never becomes one.
  void SetPageHeaders(httplib::Response& response) const {
    response.set_header("Content-Security-Policy", std::string(answer_.policy));
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cross-Origin-Opener-Policy", "same-origin");
    response.set_header("Cache-Control", "no-store");
  }

  HttpResponse AnswerTo(const httplib::Request& parsed) const {
    if (parsed.method != "GET" && parsed.method != "HEAD") {
      return {.status = 405, .body = "only GET and HEAD\n"};
    }
    const bool is_remote = request_.client.way == HttpWay::kNetwork;
    if (is_remote && (terms_.wants_own_host || terms_.token.empty()) &&
        !LeadsHere(parsed)) {
      return {
          .status = 421,
          .body = terms_.wants_own_host
                      ? "Host must be this machine's address or name\n"
                      : "Host must be this machine's address or name, unless "
                        "http.token_file is configured\n"};
    }
    if (!terms_.token.empty()) {
      // Pages without data: who opens one has no way to send the token yet.
      if (!terms_.is_public(parsed.path) &&
          !IsToken(parsed.get_header_value("Authorization"),
                   "Bearer " + terms_.token)) {
        return {.status = 401, .body = "wants Authorization: Bearer TOKEN\n"};
      }
    }
    return terms_.answer({.path = parsed.path,
                          .parameters = parsed.params,
                          .client = request_.client,
                          .is_gone = [this] { return IsGone(request_.fd); }});
  }

  // No browser leaves Host out.
  static bool LeadsHere(const httplib::Request& parsed) {
    const size_t hosts = parsed.get_header_value_count("Host");
    return hosts == 0 ||
           (hosts == 1 && IsHostOfThisMachine(parsed.get_header_value("Host"),
                                              NameOfMachine()));
  }

  const HttpRequestBytes& request_;
  const HttpTerms& terms_;
  HttpResponse answer_;  // with what it holds until it is sent
};

}  // namespace

HttpOutcome Exchange(const HttpRequestBytes& request, const HttpTerms& terms) {
  try {
    return Protocol(request, terms).Serve();
  } catch (...) {  // of httplib, as there is no memory
    return HttpOutcome::kRefused;
  }
}

}  // namespace profd
