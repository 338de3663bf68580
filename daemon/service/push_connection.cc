#include "daemon/service/push_connection.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "daemon/service/push_stream.h"
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
    case httplib::Error::SSLConnection:
      return "no TLS connection: is it a server of http?";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not of an authority that this machine trusts, "
             "or of another host: see ca-certificates, or SSL_CERT_FILE";
    case httplib::Error::Read:
      return "its answer came not in time, or is none";
    default:
      return httplib::to_string(error);
  }
}

// httplib's client, or that of TLS, on a stream of ours: its own bounds neither
// the bytes nor the time of an answer.
template <typename Client>
class BoundedClient final : public Client {
 public:
  BoundedClient(const PushUrl& url, milliseconds within)
      : Client(url.host, url.port), within_(within) {}

 private:
  using Socket = httplib::ClientImpl::Socket;

  bool process_socket(const Socket& socket,
                      std::function<bool(httplib::Stream&)> callback) override {
    PushStream stream(socket.sock, socket.ssl,
                      {.bytes = PushConnection::kMostAnswerBytes,
                       .line_bytes = PushConnection::kMostLineBytes,
                       .deadline = Clock::now() + within_});
    return callback(stream);
  }

  const milliseconds within_;
};

std::unique_ptr<httplib::ClientImpl> ClientFor(const PushUrl& url,
                                               milliseconds within) {
  if (url.is_https) {
    return std::make_unique<BoundedClient<httplib::SSLClient>>(url, within);
  }
  return std::make_unique<BoundedClient<httplib::ClientImpl>>(url, within);
}

bool IsTaken(int status) { return status >= 200 && status < 300; }

}  // namespace

class PushConnection::Impl {
 public:
  Impl(const PushUrl& url, const Settings& settings)
      : client_(ClientFor(url, settings.answer_within)) {
    client_->set_connection_timeout(settings.connect_within);
    // Of a TLS handshake; then the stream's deadline holds.
    client_->set_read_timeout(settings.answer_within);
    client_->set_write_timeout(settings.answer_within);
    client_->set_decompress(false);
    if (!settings.token.empty()) {
      client_->set_bearer_token_auth(settings.token);
    }
  }

  bool is_valid() const { return client_->is_valid(); }

  ksym::Result<Answer> Post(Message message) {
    httplib::Request request;
    request.method = "POST";
    request.path = std::move(message.path);
    request.body = std::move(message.body);
    request.set_header("Content-Type", message.content_type);
    int status = 0;
    std::string text;
    // The status is what counts, also if the rest never comes.
    request.response_handler = [&status](const httplib::Response& response) {
      status = response.status;
      return !IsTaken(status);
    };
    request.content_receiver = [&text](const char* data, size_t size,
                                       uint64_t /*offset*/,
                                       uint64_t /*total*/) {
      text.append(data, std::min(size, kMostTextBytes - text.size()));
      return text.size() < kMostTextBytes;
    };
    httplib::Response response;
    auto error = httplib::Error::Success;
    const bool whole = client_->send(request, response, error);
    if (status == 0 && whole) status = response.status;  // has no body
    if (status <= 0) {
      return ksym::Fail(ksym::ErrorCode::kIo, DescribeError(error));
    }
    Answer answer{.status = status, .text = {}};
    ksym::AppendPrintable(text, answer.text);
    return answer;
  }

  void Stop() { client_->stop(); }

 private:
  std::unique_ptr<httplib::ClientImpl> client_;
};

PushConnection::PushConnection(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
PushConnection::PushConnection(PushConnection&&) noexcept = default;
PushConnection::~PushConnection() = default;

// What httplib or TLS throw ends here.
ksym::Result<PushConnection> PushConnection::Make(const PushUrl& url,
                                                  const Settings& settings) {
  try {
    auto impl = std::make_unique<Impl>(url, settings);
    if (impl->is_valid()) return PushConnection(std::move(impl));
  } catch (const std::exception& error) {
    return ksym::Fail(ksym::ErrorCode::kUnsupported, error.what());
  }
  return ksym::Fail(ksym::ErrorCode::kUnsupported, "TLS does not work here");
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
