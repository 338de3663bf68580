#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/service/counters.h"
#include "daemon/service/http_api.h"
#include "ksym/base/result.h"

namespace profd {

// Answers HTTP in threads of its own, one per client: at most kMaxClients at
// once, and who comes then gets 503 at once. A request is at most 32 KiB, has
// 10 seconds to arrive and its answer 30 seconds to be taken. GET and HEAD, one
// request per connection, no body.
class HttpServer {
 public:
  static constexpr int kMaxClients = 32;

  struct Settings {
    std::vector<std::string> listen;  // see ParseListenAddress()
    std::string token;  // TCP clients' "Authorization: Bearer TOKEN"; empty: -
  };
  using Answer = std::function<HttpAnswer(const HttpQuestion&)>;

  // Opens all addresses, or says which could not be. `answer` is called by
  // several threads at once; what it uses and the counters must live longer.
  static ksym::Result<std::unique_ptr<HttpServer>> Start(
      const Settings& settings, Answer answer, ServiceCounters& counters);
  // Cuts all connections and waits for their threads; whatever `answer` waits
  // for must have ended.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// The token in a file: its first line. kInvalid: there is none.
ksym::Result<std::string> ReadToken(const std::string& path);

}  // namespace profd
