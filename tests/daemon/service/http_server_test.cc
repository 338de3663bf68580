// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/profile/profile.h"
#include "daemon/service/counters.h"
#include "daemon/service/http_api.h"
#include "daemon/service/metrics.h"
#include "daemon/service/profile_hub.h"
#include "ksym/base/unique_fd.h"
#include "tests/daemon/service/second.h"
#include "tests/ksym/sanitized.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr seconds kAnswerPatience(10);

ProfileHub::Shared OneSecond() {
  ProfileBuilder builder;
  Frame frame;
  frame.object = builder.Intern("/bin/app");
  frame.name = builder.Intern("main");
  const FrameId stack[] = {builder.AddFrame(frame)};
  builder.AddSample({.comm = builder.Intern("app"),
                     .pid = 7,
                     .user_state = StackState::kWhole,
                     .user = builder.AddStack(stack),
                     .count = 1});
  CaptureMetadata metadata;
  metadata.duration_ns = kSecond;
  return std::make_shared<const Profile>(std::move(builder).Finish(metadata));
}

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    std::string pattern = (fs::temp_directory_path() / "http.XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~HttpServerTest() override {
    hub_.Close();
    server_.reset();
    fs::remove_all(directory_);
  }

  // On a Unix socket and a port of the loopback, answered by the service's API
  // unless something else is given.
  void Start(HttpServer::Answer answer = {}, std::string token = {}) {
    if (!answer) {
      answer = [this](const HttpRequest& request) {
        return api_.Respond(request);
      };
    }
    auto server = HttpServer::Start(std::move(answer), counters_);
    ASSERT_TRUE(server) << server.error().message();
    server_ = std::move(*server);
    port_ = FreePort();
    auto change = server_->Prepare(
        {.listen = {"unix:" + directory_ + "/s", ":" + std::to_string(port_)},
         .token = std::move(token)});
    ASSERT_TRUE(change) << change.error().message();
    server_->Apply(std::move(*change));
  }

  static uint16_t FreePort() {
    const ksym::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name = Loopback(0);
    socklen_t size = sizeof(name);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), size),
              0);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size);
    return ntohs(name.sin_port);
  }
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
  }

  enum class Way : uint8_t { kUnix, kTcp };
  ksym::UniqueFd Connect(Way way) const {
    if (way == Way::kTcp) {
      const sockaddr_in name = Loopback(port_);
      return Connected(AF_INET, reinterpret_cast<const sockaddr*>(&name),
                       sizeof(name));
    }
    sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = directory_ + "/s";
    std::memcpy(name.sun_path, path.data(), path.size());
    return Connected(AF_UNIX, reinterpret_cast<const sockaddr*>(&name),
                     sizeof(name));
  }
  static ksym::UniqueFd Connected(int family, const sockaddr* name,
                                  socklen_t size) {
    ksym::UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), name, size), 0) << std::strerror(errno);
    return fd;
  }

  static void Send(const ksym::UniqueFd& fd, const std::string& text) {
    (void)!::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Until the server closes; "" is added for one that never does.
  static std::string ReadAll(const ksym::UniqueFd& fd,
                             milliseconds patience = kAnswerPatience) {
    std::string all;
    const auto deadline = steady_clock::now() + patience;
    std::array<char, 65536> buffer = {};
    for (;;) {
      const auto left = std::chrono::duration_cast<milliseconds>(
          deadline - steady_clock::now());
      pollfd entry = {.fd = fd.get(), .events = POLLIN, .revents = 0};
      if (left.count() <= 0 ||
          ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) {
        return all;
      }
      const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return all;
      all.append(buffer.data(), static_cast<size_t>(size));
    }
  }
  std::string Ask(Way way, const std::string& path,
                  const std::string& headers = "Host: localhost\r\n") const {
    const ksym::UniqueFd fd = Connect(way);
    Send(fd, "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n");
    return ReadAll(fd);
  }

  // Clients that have asked and do not read.
  std::vector<ksym::UniqueFd> Leave(Way way, size_t count,
                                    const std::string& request) const {
    std::vector<ksym::UniqueFd> clients;
    for (size_t i = 0; i < count; ++i) {
      clients.push_back(Connect(way));
      Send(clients.back(), request);
    }
    // What they ask is being answered by then.
    std::this_thread::sleep_for(milliseconds(300));
    return clients;
  }

  // Until it is so, or no client would wait any longer.
  static void WaitUntil(const std::function<bool()>& is_so) {
    const auto deadline = steady_clock::now() + kAnswerPatience;
    while (!is_so() && steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(50));
    }
  }
  static bool IsReadable(const ksym::UniqueFd& fd) {
    pollfd entry = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) > 0;
  }

  std::string directory_;
  uint16_t port_ = 0;
  ServiceCounters counters_;
  ProfileHub hub_{{.bytes = 64 << 20, .seconds = 1000}};
  HttpApi api_{counters_, hub_};
  std::unique_ptr<HttpServer> server_;
};

const std::string kLong =
    "GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n";

// Ranges of an answer, each of which would be copied, are not made.
TEST_F(HttpServerTest, MakesNoRanges) {
  Start([](const HttpRequest&) {
    return HttpResponse{.body = std::string(10'000, 'x')};
  });
  std::string ranges = "bytes=0-";
  for (int i = 0; i < 1000; ++i) ranges += ",0-";
  const std::string answer =
      Ask(Way::kUnix, "/profile", "raNge: " + ranges + "\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(answer.size(), 11'000u);
}

// Nor is it compressed, which takes a minute of a CPU where a client has a say
// in how.
TEST_F(HttpServerTest, DoesNotCompress) {
  Start([](const HttpRequest&) {
    return HttpResponse{.body = std::string(10'000, 'x')};
  });
  const std::string answer =
      Ask(Way::kUnix, "/profile", "Host: a\r\nAccept-Encoding: br, gzip\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_GT(answer.size(), 10'000u);
}

// Clients whose requests do not come to an end keep nobody out, not even those
// who come in the same way.
TEST_F(HttpServerTest, SlowRequestsKeepNobodyOut) {
  Start();
  for (const Way way : {Way::kUnix, Way::kTcp}) {
    const auto slow = Leave(way, 100, "GET /healthz HTTP/1.1\r\nA: b");
    for (int i = 0; i < 5; ++i) {
      EXPECT_THAT(Ask(way, "/healthz"), StartsWith("HTTP/1.1 200 "));
    }
  }
}

// Clients that wait for a profile keep nobody from a quick answer.
TEST_F(HttpServerTest, LongRequestsKeepNobodyFromOthers) {
  Start();
  // Some at a time: a busy machine accepts no hundred at once.
  std::vector<std::vector<ksym::UniqueFd>> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(Leave(Way::kTcp, 20, kLong));
  WaitUntil([&] { return counters_.http_refused > 50; });
  EXPECT_THAT(Ask(Way::kTcp, "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(Way::kUnix, "/metrics"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(Way::kTcp, "/debug/pprof/profile?seconds=1"),
              StartsWith("HTTP/1.1 429 "));
  EXPECT_GT(counters_.http_refused, 50u);
}

// Those of the network have places of their own: who may use the Unix socket
// is not kept out by them.
TEST_F(HttpServerTest, NetworkDoesNotTakeTheSocketsPlaces) {
  Start();
  const auto waiting = Leave(Way::kTcp, 100, kLong);
  const ksym::UniqueFd fd = Connect(Way::kUnix);
  Send(fd, "GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\n\r\n");
  // A busy machine answers late, and a part before that is not in the answer.
  WaitUntil([&] {
    hub_.AddPart(OneSecond());
    return IsReadable(fd);
  });
  EXPECT_THAT(ReadAll(fd), StartsWith("HTTP/1.1 200 "));
}

// The place of a client that goes away is free long before its answer's time,
// within two seconds of a machine that is not busy.
TEST_F(HttpServerTest, SeesThatAClientWentAway) {
  Start();
  for (const Way way : {Way::kUnix, Way::kTcp}) {
    const uint64_t before = counters_.http_requests;
    Leave(way, 1, kLong).clear();
    WaitUntil([&] { return counters_.http_requests != before; });
    EXPECT_EQ(counters_.http_requests, before + 1);
  }
}

// A second with so many stacks that its folded stacks take 16 MB.
ProfileHub::Shared LargeProfile() {
  constexpr int kStacks = 8000;
  constexpr int kDepth = 80;
  ProfileBuilder builder;
  Frame frame;
  frame.object = builder.Intern("/usr/lib/a/library/with/a/long/name.so.1");
  for (int i = 0; i < kStacks; ++i) {
    std::vector<FrameId> stack;
    for (int level = 0; level < kDepth; ++level) {
      frame.name = builder.Intern("a_function_with_a_name_" +
                                  std::to_string(level == 0 ? i : level));
      stack.push_back(builder.AddFrame(frame));
    }
    builder.AddSample({.comm = builder.Intern("app"),
                       .pid = 7,
                       .user_state = StackState::kWhole,
                       .user = builder.AddStack(stack),
                       .count = 1});
  }
  CaptureMetadata metadata;
  metadata.start_unix_ns = static_cast<uint64_t>(::time(nullptr)) * kSecond;
  metadata.duration_ns = kSecond;
  return std::make_shared<const Profile>(std::move(builder).Finish(metadata));
}

// However many ask for large answers and do not take them: memory is bounded,
// and a quick answer is still there.
TEST_F(HttpServerTest, AnswersThatNobodyTakesAreBounded) {
  constexpr uint64_t kMaxGrowth = uint64_t{160} << 20;
  Start();
  hub_.AddProfile(LargeProfile());
  const std::string request =
      "GET /profile HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const uint64_t before = OwnResidentBytes();
  uint64_t most = before;
  const auto local = Leave(Way::kUnix, 16, request);
  const auto remote = Leave(Way::kTcp, 16, request);
  for (int i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    most = std::max(most, OwnResidentBytes());
  }
  EXPECT_THAT(Ask(Way::kUnix, "/healthz"), StartsWith("HTTP/1.1 200 "));
  // The sanitizers' own memory is another matter.
  if (!ksym::kIsSanitized) {
    EXPECT_LT(most - before, kMaxGrowth);
  }
}

// A web page of anybody, whose name may be made to lead here, has that name in
// its requests; without a token only addresses and this machine's names do.
TEST_F(HttpServerTest, RefusesNamesOfOthers) {
  Start();
  const std::string port = ":" + std::to_string(port_);
  std::array<char, 256> own = {};
  ASSERT_EQ(::gethostname(own.data(), own.size() - 1), 0);
  for (const std::string& host :
       {std::string("127.0.0.1"), "127.0.0.1" + port, std::string("[::1]"),
        "[::1]" + port, "LocalHost" + port, own.data() + port}) {
    EXPECT_THAT(Ask(Way::kTcp, "/healthz", "Host: " + host + "\r\n"),
                StartsWith("HTTP/1.1 200 "))
        << host;
  }
  for (const std::string& host :
       {"evil.example" + port, std::string("localhost.evil.example"),
        std::string("127.0.0.1.evil.example"), std::string("[::1].example"),
        std::string("1:2:3"), std::string("127.0.0.1\r\nHost: evil.example")}) {
    EXPECT_THAT(Ask(Way::kTcp, "/healthz", "Host: " + host + "\r\n"),
                StartsWith("HTTP/1.1 421 "))
        << host;
  }
  EXPECT_THAT(Ask(Way::kUnix, "/healthz", "Host: evil.example\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(Way::kTcp, "/healthz", ""), StartsWith("HTTP/1.1 200 "));
}

// A client with the token may use any name: a page of others has no token.
TEST_F(HttpServerTest, TokenAllowsNames) {
  Start({}, "sesame");
  EXPECT_THAT(Ask(Way::kTcp, "/healthz",
                  "Host: any.example\r\nAuthorization: Bearer sesame\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(Way::kTcp, "/healthz", "Host: any.example\r\n"),
              StartsWith("HTTP/1.1 401 "));
}

// What an answer throws ends at the server, which goes on.
TEST_F(HttpServerTest, ExceptionsEndHere) {
  Start([](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/1") throw std::runtime_error("secret");
    if (request.path == "/2") throw std::bad_alloc();
    if (request.path == "/3") throw 3;
    return {};
  });
  for (const char* path : {"/1", "/2", "/3"}) {
    const std::string answer = Ask(Way::kUnix, path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 ")) << path;
    EXPECT_THAT(answer, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(Ask(Way::kUnix, "/4"), StartsWith("HTTP/1.1 200 "));
}

// What is no request, has too many bytes, or another method is told so.
TEST_F(HttpServerTest, RefusesWhatIsNoRequest) {
  Start();
  const auto answer_to = [this](const std::string& request) {
    const ksym::UniqueFd fd = Connect(Way::kUnix);
    Send(fd, request);
    return ReadAll(fd);
  };
  EXPECT_THAT(answer_to("rubbish\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer_to("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(answer_to("GET / HTTP/1.1\r\nA: " + std::string(33'000, 'x')),
              StartsWith("HTTP/1.1 431 "));
  // A request in pieces, as a slow network brings it.
  const ksym::UniqueFd fd = Connect(Way::kTcp);
  for (const char c : std::string("GET /healthz HTTP/1.1\r\n\r\n")) {
    Send(fd, std::string(1, c));
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_THAT(ReadAll(fd), HasSubstr("\r\n\r\nok\n"));
}

}  // namespace
}  // namespace profd
