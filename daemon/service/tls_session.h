// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

#include "ksym/base/result.h"

namespace profd {

// What TLS needs to speak to receivers: which authorities this machine trusts.
// Thread-safe.
class TlsClient {
 public:
  // Those of OpenSSL's default places, or of SSL_CERT_FILE and SSL_CERT_DIR.
  // kUnsupported: TLS does not work here.
  static ksym::Result<TlsClient> Make();

  struct Free {
    void operator()(SSL* session) const { ::SSL_free(session); }
    void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  };
  using Session = std::unique_ptr<SSL, Free>;

  // A session on a connected socket, which becomes non-blocking and is
  // borrowed. Blocks until the handshake is done, at the most until the
  // deadline, however slowly bytes of it come. `host`: a name or an address,
  // which the certificate must have. kIo: no TLS connection, and why;
  // kPermission: the certificate is not to be trusted.
  ksym::Result<Session> Connect(
      int fd, const std::string& host,
      std::chrono::steady_clock::time_point deadline) const;

 private:
  using Context = std::unique_ptr<SSL_CTX, Free>;
  explicit TlsClient(Context context) : context_(std::move(context)) {}

  Context context_;
};

}  // namespace profd
