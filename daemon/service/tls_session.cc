#include "daemon/service/tls_session.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <array>
#include <utility>

#include "daemon/service/socket_io.h"

namespace profd {
namespace {

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes = {};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// Sets whom the certificate must name. An address is in no name of the server.
bool SetHost(SSL* session, const std::string& host) {
  if (IsAddress(host)) {
    X509_VERIFY_PARAM* parameters = ::SSL_get0_param(session);
    return ::X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str()) == 1;
  }
  // SSL_set_tlsext_host_name(), without its cast away from const.
  return ::SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                    TLSEXT_NAMETYPE_host_name,
                    const_cast<char*>(host.c_str())) == 1 &&
         ::SSL_set1_host(session, host.c_str()) == 1;
}

std::unexpected<ksym::Error> Failure(const SSL* session) {
  if (::SSL_get_verify_result(session) != X509_V_OK) {
    return ksym::Fail(
        ksym::ErrorCode::kPermission,
        "its certificate is not of an authority that this machine trusts, or "
        "of another host: see ca-certificates, or SSL_CERT_FILE");
  }
  return ksym::Fail(ksym::ErrorCode::kIo,
                    "no TLS connection: is it a server of http?");
}

}  // namespace

ksym::Result<TlsClient> TlsClient::Make() {
  Context context(::SSL_CTX_new(::TLS_client_method()));
  if (context == nullptr ||
      ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      ::SSL_CTX_set_default_verify_paths(context.get()) != 1) {
    ::ERR_clear_error();
    return ksym::Fail(ksym::ErrorCode::kUnsupported, "TLS does not work here");
  }
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return TlsClient(std::move(context));
}

ksym::Result<TlsClient::Session> TlsClient::Connect(
    int fd, const std::string& host,
    std::chrono::steady_clock::time_point deadline) const {
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  Session session(::SSL_new(context_.get()));
  if (session == nullptr || ::SSL_set_fd(session.get(), fd) != 1 ||
      !SetHost(session.get(), host)) {
    ::ERR_clear_error();
    return ksym::Fail(ksym::ErrorCode::kUnsupported, "TLS does not work here");
  }
  for (;;) {
    ::ERR_clear_error();
    const int result = ::SSL_connect(session.get());
    if (result == 1) return session;
    const int reason = ::SSL_get_error(session.get(), result);
    if (reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE) {
      auto failure = Failure(session.get());
      ::ERR_clear_error();
      return failure;
    }
    const short events = reason == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    if (!WaitForSocket(fd, events, deadline)) {
      return ksym::Fail(ksym::ErrorCode::kIo,
                        "its TLS handshake was not done in time");
    }
  }
}

}  // namespace profd
