// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/tls_session.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "daemon/http/socket_io.h"
#include "ksym/base/linked_in.h"

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

// Debian's, Red Hat's, SUSE's and Alpine's, where the library looks for the
// first only. The first one that is there counts, after SSL_CERT_FILE.
void TrustAuthoritiesOfMachine(SSL_CTX* context) {
  if (std::getenv("SSL_CERT_FILE") != nullptr) return;
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt",
                           "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (::SSL_CTX_load_verify_locations(context, file, nullptr) == 1) return;
  }
  ::ERR_clear_error();
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
  // The machine's openssl.cnf may name modules to load.
  const bool linked_in = ksym::HasLibrariesLinkedIn();
  if (linked_in) ::OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  Context context(::SSL_CTX_new(::TLS_client_method()));
  if (context == nullptr ||
      ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      ::SSL_CTX_set_default_verify_paths(context.get()) != 1) {
    ::ERR_clear_error();
    return ksym::Fail(ksym::ErrorCode::kUnsupported, "TLS does not work here");
  }
  if (linked_in) TrustAuthoritiesOfMachine(context.get());
  // Without it a client believes any certificate (SSL_CTX_set_verify(3)).
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
