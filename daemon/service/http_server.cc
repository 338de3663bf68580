#include "daemon/service/http_server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/service/listen_address.h"
#include "daemon/service/log.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxRequestBytes = 32 << 10;
constexpr seconds kRequestWithin(10);
constexpr seconds kAnswerWithin(30);
constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
    "Content-Length: 17\r\n\r\ntoo many clients\n";

// A socket whose client has so long for the request and for the answer,
// however slowly the bytes come and go.
class DeadlineStream : public httplib::Stream {
 public:
  explicit DeadlineStream(int fd)
      : fd_(fd), deadline_(Clock::now() + kRequestWithin) {}
  using httplib::Stream::write;

  // What httplib calls for connections that go on; ours do not.
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    if (begin_ == end_ && !Fill()) return -1;
    const size_t taken = std::min(size, end_ - begin_);
    std::copy_n(buffer_.begin() + static_cast<ptrdiff_t>(begin_), taken, to);
    begin_ += taken;
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* from, size_t size) override {
    if (!std::exchange(answers_, true)) {
      deadline_ = Clock::now() + kAnswerWithin;
    }
    for (;;) {
      const ssize_t sent = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) return sent;
      if ((errno != EAGAIN && errno != EINTR) || !WaitFor(POLLOUT)) return -1;
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
  bool Fill() {
    if (received_ >= kMaxRequestBytes || !WaitFor(POLLIN)) return false;
    const ssize_t size =
        ::recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (size <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(size);
    received_ += end_;
    return true;
  }
  bool WaitFor(short events) const {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
    if (left <= milliseconds(0)) return false;
    pollfd entry = {.fd = fd_, .events = events, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(left.count())) > 0;
  }

  int fd_;
  Clock::time_point deadline_;
  bool answers_ = false;
  std::array<char, 4096> buffer_ = {};
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t received_ = 0;
};

// Without telling by the time it takes where the first wrong byte is.
bool IsToken(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned>(given[i] ^ wanted[i % wanted.size()]);
  }
  return difference == 0;
}

// httplib's parser of requests and writer of responses, without its sockets:
// those it has know neither Unix sockets nor bounds on clients and time.
class Protocol : public httplib::Server {
 public:
  explicit Protocol(HttpServer::Answer answer) : answer_(std::move(answer)) {
    set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          Handle(request, response);
          return HandlerResponse::Handled;
        });
  }
  // Empty: none is asked for.
  void SetToken(std::string token) {
    const std::lock_guard lock(mutex_);
    token_ = std::move(token);
  }
  void Serve(int fd) {
    DeadlineStream stream(fd);
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, nullptr);
  }

 private:
  void Handle(const httplib::Request& request,
              httplib::Response& response) const {
    HttpAnswer answer;
    const std::string wanted = token();
    const std::string given = request.get_header_value("Authorization");
    if (request.method != "GET" && request.method != "HEAD") {
      answer = {.status = 405, .body = "only GET and HEAD\n"};
    } else if (!wanted.empty() && !IsToken(given, "Bearer " + wanted)) {
      answer = {.status = 401, .body = "wants Authorization: Bearer TOKEN\n"};
    } else {
      answer = answer_({request.path, request.params});
    }
    response.status = answer.status;
    // go tool pprof shows the body of an error that has it.
    if (answer.status != 200) response.set_header("X-Go-Pprof", "1");
    if (answer.status == 401) response.set_header("WWW-Authenticate", "Bearer");
    response.set_content(answer.body, answer.content_type);
  }

  std::string token() const {
    const std::lock_guard lock(mutex_);
    return token_;
  }

  HttpServer::Answer answer_;
  mutable std::mutex mutex_;  // of token_
  std::string token_;
};

}  // namespace

class HttpServer::Impl {
 public:
  using Listeners = std::vector<std::shared_ptr<const HttpListener>>;

  Impl(const Answer& answer, ServiceCounters& counters)
      : local_(answer), remote_(answer), counters_(counters) {}

  ksym::Status Start() {
    wake_ = ksym::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.valid()) return ksym::FailErrno(errno, "eventfd");
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
    std::unique_lock lock(mutex_);
    for (const int fd : clients_) ::shutdown(fd, SHUT_RDWR);
    changed_.wait(lock, [this] { return clients_.empty(); });
  }

  Listeners listeners() const {
    const std::lock_guard lock(mutex_);
    return listeners_;
  }

  void Apply(Listeners listeners, std::string token) {
    remote_.SetToken(std::move(token));
    {
      const std::lock_guard lock(mutex_);
      listeners_ = std::move(listeners);
    }
    Wake();
  }

 private:
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
    std::vector<pollfd> entries = {{wake_.get(), POLLIN, 0}};
    for (const auto& listener : listeners) {
      entries.push_back({listener->fd.get(), POLLIN, 0});
    }
    for (;;) {
      if (::poll(entries.data(), entries.size(), -1) < 0) continue;
      if (entries[0].revents != 0) break;
      for (size_t i = 0; i < listeners.size(); ++i) {
        if (entries[i + 1].revents != 0) AcceptOne(*listeners[i]);
      }
    }
    eventfd_t woken = 0;
    ::eventfd_read(wake_.get(), &woken);
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
    const bool served = Begin(fd.get(), listener.is_local());
    if (served) {
      (void)fd.Release();
      return;
    }
    ++counters_.http_refused;
    (void)::send(fd.get(), kBusy.data(), kBusy.size(),
                 MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Starts the client's thread, which closes the descriptor in the end.
  bool Begin(int fd, bool is_local) {
    {
      const std::lock_guard lock(mutex_);
      if (clients_.size() >= static_cast<size_t>(kMaxClients)) return false;
      clients_.insert(fd);
    }
    try {
      std::thread([this, fd, is_local] { Serve(fd, is_local); }).detach();
      return true;
    } catch (const std::system_error&) {  // no more threads are allowed
      const std::lock_guard lock(mutex_);
      clients_.erase(fd);
      return false;
    }
  }

  void Serve(int fd, bool is_local) {
    (is_local ? local_ : remote_).Serve(fd);
    ++counters_.http_requests;
    // What the client still sends would make close() cut the answer off.
    ::shutdown(fd, SHUT_WR);
    std::array<char, 4096> rest = {};
    while (::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    const std::lock_guard lock(mutex_);
    clients_.erase(fd);
    ::close(fd);
    changed_.notify_all();
  }

  Protocol local_;
  Protocol remote_;
  ServiceCounters& counters_;
  ksym::UniqueFd wake_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Listeners listeners_;
  std::set<int> clients_;  // descriptors that are being served
  bool stopped_ = false;

  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

ksym::Result<std::unique_ptr<HttpServer>> HttpServer::Start(
    Answer answer, ServiceCounters& counters) {
  auto impl = std::make_unique<Impl>(answer, counters);
  auto started = impl->Start();
  if (!started) return ksym::Fail(std::move(started.error()));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

ksym::Result<HttpServer::Change> HttpServer::Prepare(
    const Settings& settings) const {
  Change change;
  change.token_ = settings.token;
  const auto before = impl_->listeners();
  for (const std::string& text : settings.listen) {
    const auto known = std::ranges::find_if(
        before, [&](const auto& listener) { return listener->text == text; });
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
  impl_->Apply(std::move(change.listeners_), std::move(change.token_));
}

HttpListener::~HttpListener() {
  if (is_local()) ::unlink(address.path.c_str());
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
