// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/base/event_fds.h"
#include "daemon/http/http_arrivals.h"
#include "daemon/http/http_client.h"
#include "daemon/http/socket_io.h"
#include "daemon/service/http_exchange.h"
#include "daemon/service/listen_address.h"
#include "daemon/service/log.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
    "Content-Length: 17\r\n\r\ntoo many clients\n";

}  // namespace

// A connection is accepted, then arrives (HttpArrivals, in the accepting
// thread) until its head is whole, then is served by a thread of its own.
// Whichever of the two has it closes it.
class HttpServer::Impl {
 public:
  using Listeners = std::vector<std::shared_ptr<const HttpListener>>;

  Impl(Answer answer, ServiceCounters& counters, IsPublic is_public)
      : answer_(std::move(answer)),
        is_public_(std::move(is_public)),
        counters_(counters) {}

  ksym::Status Start() {
    auto wake = MakeEventFd();
    if (!wake) return ksym::Fail(wake.error());
    wake_ = std::move(*wake);
    thread_ = std::thread([this] { Accept(); });
    return {};
  }

  ~Impl() {
    if (thread_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
      }
      Wake();
      thread_.join();
    }
    // No thread is begun any more. Those that run are cut off, not joined: they
    // are detached, and leave clients_ last.
    std::unique_lock lock(mutex_);
    for (const int fd : clients_) ::shutdown(fd, SHUT_RDWR);
    changed_.wait(lock, [this] { return clients_.empty(); });
  }

  Listeners listeners() const {
    const std::lock_guard lock(mutex_);
    return listeners_;
  }

  void Apply(Listeners listeners, std::string token, bool wants_own_host) {
    {
      const std::lock_guard lock(mutex_);
      token_ = std::move(token);
      wants_own_host_ = wants_own_host;
      listeners_ = std::move(listeners);
    }
    Wake();
  }

 private:
  // Stays readable until it is read (eventfd(2)), so a call before poll() is
  // not lost.
  void Wake() const { ::eventfd_write(wake_.get(), 1); }

  void Accept() {
    while (!stopped()) AcceptFrom(listeners());
  }

  bool stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

  // Until it is woken.
  void AcceptFrom(const Listeners& listeners) {
    for (;;) {
      std::vector<pollfd> entries = {{wake_.get(), POLLIN, 0}};
      for (const auto& listener : listeners) {
        entries.push_back({listener->fd.get(), POLLIN, 0});
      }
      arrivals_.AppendTo(entries);
      if (::poll(entries.data(), entries.size(), MillisecondsLeft()) < 0) {
        continue;
      }
      // Before anything is accepted: the entries are of those that were
      // arriving when poll() was called.
      const pollfd* arriving = entries.data() + 1 + listeners.size();
      for (auto& request : arrivals_.Take(arriving, Clock::now())) {
        Begin(std::move(request));
      }
      // The listeners may be others now.
      if (entries[0].revents != 0) break;
      for (size_t i = 0; i < listeners.size(); ++i) {
        if (entries[i + 1].revents != 0) AcceptOne(*listeners[i]);
      }
    }
    // Read before the listeners are looked at again: what changes after that
    // wakes once more.
    eventfd_t woken = 0;
    ::eventfd_read(wake_.get(), &woken);
  }

  // Until a request that arrives will be too late, for poll().
  int MillisecondsLeft() const {
    if (arrivals_.size() == 0) return -1;
    const auto left = std::chrono::ceil<milliseconds>(arrivals_.NextDeadline() -
                                                      Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  void AcceptOne(const HttpListener& listener) {
    ksym::UniqueFd fd(::accept4(listener.fd.get(), nullptr, nullptr,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
      LogSome(LogLevel::kError, "accept",
              ksym::Error::FromErrno(errno, "accept").message());
      // Out of descriptors: the client stays in the queue meanwhile.
      std::this_thread::sleep_for(milliseconds(100));
      return;
    }
    HttpClient client = ClientOf(fd.get(), listener.way());
    arrivals_.Add(std::move(fd), std::move(client), Clock::now());
  }

  // Starts the request's thread.
  void Begin(HttpArrivals::Arrived request) {
    const int fd = request.fd.get();
    {
      const std::lock_guard lock(mutex_);
      if (clients_.size() >= static_cast<size_t>(kMaxThreads)) {
        return Refuse(fd);
      }
      // Before its thread begins: from here on the destructor waits for it.
      clients_.insert(fd);
    }
    try {
      // A thread that cannot be started gives the request back.
      auto owned = std::make_shared<HttpArrivals::Arrived>(std::move(request));
      std::thread([this, owned] { Serve(std::move(*owned)); }).detach();
    } catch (const std::exception&) {  // no threads or no memory any more
      const std::lock_guard lock(mutex_);
      clients_.erase(fd);
      ++counters_.http_refused;
    }
  }

  void Refuse(int fd) {
    ++counters_.http_refused;
    (void)::send(fd, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    EndAnswer(fd);
  }

  void Serve(HttpArrivals::Arrived arrived) {
    const int fd = arrived.fd.get();
    const bool is_local = arrived.client.way == HttpWay::kUnixSocket;
    const HttpOutcome outcome =
        Exchange({.fd = fd,
                  .client = std::move(arrived.client),
                  .head = std::move(arrived.head)},
                 // The mode of the Unix socket says who may ask there.
                 {.token = is_local ? std::string() : token(),
                  .wants_own_host = wants_own_host(),
                  .is_public = is_public_,
                  .answer = answer_});
    ++(outcome == HttpOutcome::kRefused ? counters_.http_refused
                                        : counters_.http_requests);
    EndAnswer(fd);
    // Erased before it is closed: the number may be another client's at once,
    // and the destructor would cut that one off, or wait for it in vain.
    const std::lock_guard lock(mutex_);
    clients_.erase(fd);
    arrived.fd.Reset();
    // Under the lock: the destructor frees changed_ as soon as it gets it.
    changed_.notify_all();
  }

  std::string token() const {
    const std::lock_guard lock(mutex_);
    return token_;
  }
  bool wants_own_host() const {
    const std::lock_guard lock(mutex_);
    return wants_own_host_;
  }

  const Answer answer_;
  const IsPublic is_public_;
  ServiceCounters& counters_;
  HttpArrivals arrivals_;  // of the accepting thread
  ksym::UniqueFd wake_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Listeners listeners_;
  std::string token_;
  bool wants_own_host_ = false;
  std::set<int> clients_;  // descriptors that are being served
  bool stopped_ = false;

  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

ksym::Result<std::unique_ptr<HttpServer>> HttpServer::Start(
    Answer answer, ServiceCounters& counters, IsPublic is_public) {
  auto impl =
      std::make_unique<Impl>(std::move(answer), counters, std::move(is_public));
  auto started = impl->Start();
  if (!started) return ksym::Fail(std::move(started.error()));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

ksym::Result<HttpServer::Change> HttpServer::Prepare(
    const Settings& settings) const {
  Change change;
  change.token_ = settings.token;
  change.wants_own_host_ = settings.wants_own_host;
  const auto before = impl_->listeners();
  for (const std::string& text : settings.listen) {
    const auto known = std::ranges::find_if(
        before, [&](const auto& listener) { return listener->text == text; });
    // Its address is taken, by us: another bind() would fail.
    if (known != before.end()) {
      change.listeners_.push_back(*known);
      continue;
    }
    const auto address = ParseListenAddress(text);
    if (!address) return ksym::Fail(address.error());
    auto fd = Listen(*address);
    if (!fd) return ksym::Fail(std::move(fd.error()).WithContext(text));
    change.listeners_.push_back(
        std::make_shared<HttpListener>(text, *address, std::move(*fd)));
  }
  return change;
}

void HttpServer::Apply(Change change) {
  for (const auto& listener : change.listeners_) {
    if (listener->address.is_loopback() || !change.token_.empty()) continue;
    Log(LogLevel::kWarning,
        listener->text +
            ": everybody who reaches it can read profiles: give "
            "http.token_file");
  }
  impl_->Apply(std::move(change.listeners_), std::move(change.token_),
               change.wants_own_host_);
}

HttpListener::~HttpListener() {
  // Its file stays when the descriptor is closed (unix(7)). It goes first, so
  // that nobody finds one at which no one listens.
  if (way() == HttpWay::kUnixSocket) ::unlink(address.path.c_str());
}

ksym::Result<std::string> ReadToken(const std::string& path) {
  constexpr size_t kMaxBytes = 4096;
  auto text = ksym::ReadFile(path, kMaxBytes);
  if (!text) return text;
  std::string_view rest = *text;
  std::string token(ksym::TakeField(rest, '\n'));
  if (token.empty()) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      path + ": its first line is empty: no token");
  }
  return token;
}

}  // namespace profd
