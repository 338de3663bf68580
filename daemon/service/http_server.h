// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/service/counters.h"
#include "daemon/service/http_message.h"
#include "daemon/service/listen_address.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Answers HTTP: GET and HEAD, one request per connection, no body. Requests
// arrive in one thread (HttpArrivals has the bounds); each that is there gets
// a thread, at most kMaxThreads at once, and what comes then gets 503.
class HttpServer {
 public:
  static constexpr int kMaxThreads = 96;

  struct Settings {
    std::vector<std::string> listen;  // see ParseListenAddress()
    // TCP clients' "Authorization: Bearer TOKEN". Empty: none, but then Host
    // must be this machine's.
    std::string token;
    // Host must be this machine's also where a token is wanted: of a server
    // that only programs on this machine reach.
    bool wants_own_host = false;
  };
  using Answer = std::function<HttpResponse(const HttpRequest&)>;
  // Whether anybody may have what is at a path, without a token.
  using IsPublic = std::function<bool(std::string_view path)>;
  // Settings that are about to come into force, with all that could fail done.
  class Change;

  // Listens nowhere; Apply() says where. `answer` is called by several threads
  // at once; what it uses and the counters must live longer.
  static ksym::Result<std::unique_ptr<HttpServer>> Start(
      Answer answer, ServiceCounters& counters,
      IsPublic is_public = [](std::string_view) { return false; });
  // Cuts all connections and waits for their threads; whatever `answer` waits
  // for must have ended.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Opens the addresses at which it does not listen yet, all or none.
  ksym::Result<Change> Prepare(const Settings& settings) const;
  // Clients that are there stay.
  void Apply(Change change);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// An address at which it listens. A Unix socket is removed with it.
struct HttpListener {
  HttpListener(std::string listens_at, ListenAddress where,
               ksym::UniqueFd socket)
      : text(std::move(listens_at)),
        address(std::move(where)),
        fd(std::move(socket)) {}
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  HttpWay way() const {
    return address.path.empty() ? HttpWay::kNetwork : HttpWay::kUnixSocket;
  }

  const std::string text;  // as in the settings
  const ListenAddress address;
  const ksym::UniqueFd fd;
};

class HttpServer::Change {
 private:
  friend class HttpServer;
  std::vector<std::shared_ptr<const HttpListener>> listeners_;
  std::string token_;
  bool wants_own_host_ = false;
};

// The token in a file: its first line. kInvalid: there is none.
ksym::Result<std::string> ReadToken(const std::string& path);

}  // namespace profd
