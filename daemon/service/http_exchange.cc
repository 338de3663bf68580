// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/http_exchange.h"

#include <httplib.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "daemon/service/http_host.h"
#include "daemon/service/socket_io.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerWithin(30);

bool IsRead(std::string_view line) {
  const std::string name(line.substr(0, line.find(':')));
  return ::strcasecmp(name.c_str(), "Host") == 0 ||
         ::strcasecmp(name.c_str(), "Authorization") == 0;
}

// httplib would make ranges of an answer, each a copy, compress it as slowly
// as it can, and match lines with a stack as deep as they are long.
std::string OnlyWhatIsRead(std::string_view head) {
  std::string kept(ksym::TakeField(head, '\n'));
  kept += '\n';
  while (!head.empty()) {
    const std::string_view line = ksym::TakeField(head, '\n');
    if (IsRead(line)) kept.append(line) += '\n';
  }
  return kept + "\r\n";
}

// What httplib reads its request from and writes its answer to.
class ExchangeStream : public httplib::Stream {
 public:
  ExchangeStream(int fd, std::string head) : fd_(fd), head_(std::move(head)) {}
  using httplib::Stream::write;

  // What httplib calls for connections that go on; ours do not.
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t taken = head_.copy(to, size, read_);
    read_ += taken;
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* from, size_t size) override {
    if (deadline_ == Clock::time_point()) {
      deadline_ = Clock::now() + kAnswerWithin;
    }
    for (;;) {
      const ssize_t sent = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) return sent;
      if ((errno != EAGAIN && errno != EINTR) ||
          !WaitForSocket(fd_, POLLOUT, deadline_)) {
        return -1;
      }
    }
  }
  void get_remote_ip_and_port(std::string& /*ip*/,
                              int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/,
                             int& /*port*/) const override {}
  // Not ours: httplib refuses numbers that select(2) cannot have, and a
  // symbolizer holds thousands of files open.
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  const int fd_;
  const std::string head_;
  size_t read_ = 0;
  Clock::time_point deadline_;  // from the answer's first byte on
};

// Without telling by the time it takes where the first wrong byte is.
bool IsToken(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned>(given[i] ^ wanted[i % wanted.size()]);
  }
  return difference == 0;
}

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
    ExchangeStream stream(request_.fd, OnlyWhatIsRead(request_.head));
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
    if (!terms_.token.empty()) {
      // Pages without data: who opens one has no way to send the token yet.
      if (!terms_.is_public(parsed.path) &&
          !IsToken(parsed.get_header_value("Authorization"),
                   "Bearer " + terms_.token)) {
        return {.status = 401, .body = "wants Authorization: Bearer TOKEN\n"};
      }
    } else if (request_.client.way == HttpWay::kNetwork && !LeadsHere(parsed)) {
      return {.status = 421,
              .body =
                  "Host must be this machine's address or name, unless "
                  "http.token_file is configured\n"};
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
