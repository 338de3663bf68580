// SPDX-License-Identifier: Apache-2.0
#include "daemon/ui/page_gate.h"

#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <list>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/event_fds.h"
#include "daemon/http/http_arrivals.h"
#include "daemon/http/http_host.h"
#include "daemon/http/http_request_stream.h"
#include "daemon/http/http_token.h"
#include "daemon/http/page_files.h"
#include "daemon/http/socket_io.h"
#include "daemon/oneshot/messages.h"
#include "daemon/ui/relay.h"

namespace profd {
namespace {

using GateClock = std::chrono::steady_clock;

constexpr std::string_view kGateIsBusy =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
    "Content-Length: 18\r\n\r\ntoo many requests\n";

// A refusal, or 0 and an empty sentence: let it through.
struct Verdict {
  int status = 0;
  std::string_view why;
};

// The socket's bytes of a request line are sent on: no line may end in them.
bool IsPlain(std::string_view target) {
  return target.starts_with('/') &&
         std::ranges::all_of(target, [](char c) { return c > ' ' && c < 127; });
}

Verdict Judge(const httplib::Request& request, std::string_view token) {
  if (request.method != "GET") return {405, "only GET"};
  if (request.get_header_value_count("Host") != 1 ||
      !IsHostOfThisMachine(request.get_header_value("Host"), {})) {
    return {421, "Host must be this machine's loopback"};
  }
  if (!IsPlain(request.target)) return {400, "the path is not plain"};
  if (IsPageFile(request.path)) return {};
  if (request.get_header_value_count("Authorization") != 1 ||
      !IsToken(request.get_header_value("Authorization"),
               "Bearer " + std::string(token))) {
    return {401,
            "wants Authorization: Bearer TOKEN, which the page's address has"};
  }
  if (!request.path.starts_with(kHistoryPath)) {
    return {404, "only the history's page is here"};
  }
  return {};
}

// One request, read by httplib. What is let through is answered by the service.
class GateExchange : public httplib::Server {
 public:
  GateExchange(const PageGate::Terms& terms, int client, int stop)
      : terms_(terms), client_(client), stop_(stop) {
    set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          Handle(request, response);
          return HandlerResponse::Handled;
        });
  }

  void Serve(std::string_view head) {
    HttpRequestStream stream(client_, head);
    stream_ = &stream;
    bool is_closed = false;
    process_request(stream, /*close_connection=*/true, is_closed, nullptr);
  }

 private:
  void Handle(const httplib::Request& request, httplib::Response& response) {
    const Verdict verdict = Judge(request, terms_.token);
    if (verdict.status != 0) {
      Refuse(verdict.status, std::string(verdict.why), response);
      return;
    }
    const auto relayed = Relay({.socket = terms_.socket,
                                .target = request.target,
                                .client = client_,
                                .stop = stop_});
    if (relayed) {
      stream_->Mute();
    } else {
      Refuse(502, relayed.error().message(), response);
    }
  }

  static void Refuse(int status, const std::string& why,
                     httplib::Response& response) {
    response.status = status;
    if (status == 401) response.set_header("WWW-Authenticate", "Bearer");
    if (status == 405) response.set_header("Allow", "GET");
    response.set_header("Content-Security-Policy",
                        "default-src 'none'; frame-ancestors 'none'");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Cache-Control", "no-store");
    response.set_content(why + "\n", "text/plain; charset=utf-8");
  }

  const PageGate::Terms& terms_;
  const int client_;
  const int stop_;
  HttpRequestStream* stream_ = nullptr;
};

}  // namespace

// One thread accepts and waits until heads are whole (HttpArrivals); each
// request then has a thread, of which there are kMaxClients at the most.
class PageGate::Impl {
 public:
  Impl(LoopbackListeners listeners, Terms terms)
      : listeners_(std::move(listeners)), terms_(std::move(terms)) {}

  ksym::Status Start() {
    auto stop = MakeEventFd();
    if (!stop) return ksym::Fail(std::move(stop.error()));
    stop_ = std::move(*stop);
    thread_ = std::thread([this] { Run(); });
    return {};
  }

  // The event stays readable, so all threads see it.
  ~Impl() {
    if (!thread_.joinable()) return;
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
    for (Client& client : clients_) client.thread.join();
  }

 private:
  struct Client {
    std::thread thread = {};
    std::atomic<bool> is_done = false;
  };

  void Run() {
    for (;;) {
      std::vector<pollfd> entries = {{stop_.get(), POLLIN, 0}};
      for (const ksym::UniqueFd& fd : listeners_.fds) {
        entries.push_back({fd.get(), POLLIN, 0});
      }
      arrivals_.AppendTo(entries);
      if (::poll(entries.data(), entries.size(), MillisecondsLeft()) < 0) {
        continue;
      }
      if (entries[0].revents != 0) return;
      // Before anything is accepted: the entries are of those that were
      // arriving when poll() was called.
      const pollfd* arriving = entries.data() + 1 + listeners_.fds.size();
      for (auto& request : arrivals_.Take(arriving, GateClock::now())) {
        Begin(std::move(request));
      }
      for (size_t i = 0; i < listeners_.fds.size(); ++i) {
        if (entries[i + 1].revents != 0) Accept(listeners_.fds[i].get());
      }
    }
  }

  // Until a request that arrives will be too late, for poll().
  int MillisecondsLeft() const {
    if (arrivals_.size() == 0) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        arrivals_.NextDeadline() - GateClock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  void Accept(int listener) {
    ksym::UniqueFd fd(
        ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      // Out of descriptors: the client stays in the queue meanwhile.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      return;
    }
    HttpClient client = ClientOf(fd.get(), HttpWay::kNetwork);
    arrivals_.Add(std::move(fd), std::move(client), GateClock::now());
  }

  void Begin(HttpArrivals::Arrived request) {
    std::erase_if(clients_, [](Client& client) {
      if (!client.is_done) return false;
      client.thread.join();
      return true;
    });
    if (clients_.size() >= kMaxClients) {
      (void)::send(request.fd.get(), kGateIsBusy.data(), kGateIsBusy.size(),
                   MSG_NOSIGNAL | MSG_DONTWAIT);
      EndAnswer(request.fd.get());
      return;
    }
    Client& client = clients_.emplace_back();
    try {
      client.thread =
          std::thread([this, &client, request = std::move(request)]() mutable {
            Serve(std::move(request));
            client.is_done = true;
          });
    } catch (const std::exception&) {  // no threads or no memory any more
      clients_.pop_back();
    }
  }

  void Serve(HttpArrivals::Arrived request) {
    try {
      GateExchange(terms_, request.fd.get(), stop_.get()).Serve(request.head);
    } catch (const std::exception& error) {
      // httplib throws where there is no memory: the connection ends.
      PrintMessage(error.what());
    }
    EndAnswer(request.fd.get());
  }

  const LoopbackListeners listeners_;
  const Terms terms_;
  ksym::UniqueFd stop_;
  HttpArrivals arrivals_;      // of the accepting thread
  std::list<Client> clients_;  // the same, until it has ended
  std::thread thread_;
};

PageGate::PageGate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PageGate::~PageGate() = default;

ksym::Result<std::unique_ptr<PageGate>> PageGate::Open(
    LoopbackListeners listeners, Terms terms) {
  auto impl = std::make_unique<Impl>(std::move(listeners), std::move(terms));
  if (auto started = impl->Start(); !started) {
    return ksym::Fail(std::move(started.error()));
  }
  return std::unique_ptr<PageGate>(new PageGate(std::move(impl)));
}

}  // namespace profd
