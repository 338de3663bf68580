// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/push_connection.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "daemon/service/push_stream.h"
#include "daemon/service/tls_session.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Why there was no answer, and what to do about it.
std::string DescribeError(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "no connection";
    case httplib::Error::Read:
      return "its answer came not in time, or is none";
    default:
      return httplib::to_string(error);
  }
}

// httplib's client on a stream of ours: its own bounds neither the bytes nor
// the time of an answer. Its client of TLS waits anew for each byte of a
// handshake, and cannot be stopped meanwhile, so TLS is begun here as well.
class BoundedClient final : public httplib::ClientImpl {
 public:
  BoundedClient(const PushUrl& url, std::optional<TlsClient> tls,
                const PushConnection::Settings& settings)
      : ClientImpl(url.host, url.port),
        host_name_(url.host),
        tls_(std::move(tls)),
        within_(settings.answer_within),
        max_answer_bytes_(settings.max_answer_bytes),
        is_over_(settings.is_over) {}

  // Why the last request got no TLS connection; empty: it had one.
  const std::string& tls_failure() const { return tls_failure_; }

 private:
  bool process_socket(const Socket& socket,
                      std::function<bool(httplib::Stream&)> callback) override {
    const auto deadline = Clock::now() + within_;
    TlsClient::Session session;
    tls_failure_.clear();
    if (tls_) {
      auto connected = tls_->Connect(socket.sock, host_name_, deadline);
      if (!connected) {
        tls_failure_ = connected.error().message();
        return false;
      }
      session = std::move(*connected);
    }
    PushStream stream(socket.sock, session.get(),
                      {.bytes = max_answer_bytes_,
                       .line_bytes = PushConnection::kMaxLineBytes,
                       .deadline = deadline,
                       .is_over = is_over_});
    return callback(stream);
  }

  const std::string host_name_;
  const std::optional<TlsClient> tls_;
  const milliseconds within_;
  const size_t max_answer_bytes_;
  const std::function<bool()> is_over_;
  std::string tls_failure_;
};

// httplib would name the port of https as if it were another one.
std::string HostHeader(const PushUrl& url) {
  constexpr uint16_t kHttpsPort = 443;
  const std::string host =
      url.host.contains(':') ? '[' + url.host + ']' : url.host;
  return url.port == kHttpsPort ? host : fmt::format("{}:{}", host, url.port);
}

bool IsTaken(int status) { return status >= 200 && status < 300; }

}  // namespace

class PushConnection::Impl {
 public:
  Impl(const PushUrl& url, std::optional<TlsClient> tls,
       const Settings& settings)
      : client_(url, std::move(tls), settings),
        max_answer_bytes_(settings.max_answer_bytes),
        host_header_(url.is_https ? HostHeader(url) : "") {
    client_.set_connection_timeout(settings.connect_within);
    // A bound on the bytes that come is none on what they would inflate to.
    client_.set_decompress(false);
    if (!settings.token.empty()) {
      client_.set_bearer_token_auth(settings.token);
    }
    if (!settings.login.empty()) {
      const size_t colon = settings.login.find(':');
      client_.set_basic_auth(
          settings.login.substr(0, colon),
          colon == std::string::npos ? "" : settings.login.substr(colon + 1));
    }
  }

  ksym::Result<Answer> Post(Message message) {
    httplib::Request request;
    request.method = "POST";
    request.path = std::move(message.path);
    request.body = std::move(message.body);
    request.set_header("Content-Type", message.content_type);
    if (!message.content_encoding.empty()) {
      request.set_header("Content-Encoding", message.content_encoding);
    }
    if (!host_header_.empty()) request.set_header("Host", host_header_);
    int status = 0;
    std::string text;
    const bool wants_answer = message.wants_answer;
    size_t max_bytes = kMaxTextBytes;
    // The status is what counts, also if the rest never comes.
    request.response_handler = [&](const httplib::Response& response) {
      status = response.status;
      if (!IsTaken(status)) return true;
      max_bytes = max_answer_bytes_;
      return wants_answer;
    };
    request.content_receiver = [&](const char* data, size_t size,
                                   uint64_t /*offset*/, uint64_t /*total*/) {
      text.append(data, std::min(size, max_bytes - text.size()));
      return text.size() < max_bytes;
    };
    httplib::Response response;
    auto error = httplib::Error::Success;
    const bool whole = client_.send(request, response, error);
    if (status == 0 && whole) status = response.status;  // has no body
    if (status <= 0) {
      const std::string& tls = client_.tls_failure();
      return ksym::Fail(ksym::ErrorCode::kIo,
                        tls.empty() ? DescribeError(error) : tls);
    }
    Answer answer{.status = status, .text = {}, .body = {}, .is_whole = whole};
    if (IsTaken(status)) {
      answer.body = std::move(text);
    } else {
      answer.text = ksym::Printable(text);
    }
    return answer;
  }

  void Stop() { client_.stop(); }

 private:
  BoundedClient client_;
  const size_t max_answer_bytes_;
  const std::string host_header_;  // empty: httplib's
};

PushConnection::PushConnection(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
PushConnection::PushConnection(PushConnection&&) noexcept = default;
PushConnection::~PushConnection() = default;

// What httplib or TLS throw ends here.
ksym::Result<PushConnection> PushConnection::Make(const PushUrl& url,
                                                  const Settings& settings) {
  try {
    std::optional<TlsClient> tls;
    if (url.is_https) {
      auto made = TlsClient::Make();
      if (!made) return ksym::Fail(std::move(made.error()));
      tls = std::move(*made);
    }
    return PushConnection(
        std::make_unique<Impl>(url, std::move(tls), settings));
  } catch (const std::exception& error) {
    return ksym::Fail(ksym::ErrorCode::kUnsupported, error.what());
  }
}

ksym::Result<PushConnection::Answer> PushConnection::Post(Message message) {
  try {
    return impl_->Post(std::move(message));
  } catch (const std::exception& error) {
    return ksym::Fail(ksym::ErrorCode::kIo, error.what());
  }
}

void PushConnection::Stop() { impl_->Stop(); }

}  // namespace profd
