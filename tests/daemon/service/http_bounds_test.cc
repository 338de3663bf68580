// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/http/http_arrivals.h"
#include "daemon/http/http_client.h"
#include "daemon/service/http_places.h"
#include "daemon/service/response_room.h"

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

HttpClient Network(std::string name) {
  return {.way = HttpWay::kNetwork, .name = std::move(name)};
}

// One client gets its share, all of one way theirs, and what is given back is
// free again; another way and another kind are not touched by it.
TEST(HttpPlacesTest, BoundsClientsAndWays) {
  const auto bounds = HttpPlaces::BoundsOf(HttpKind::kLive);
  HttpPlaces places;
  std::vector<HttpPlaces::Place> taken;
  for (size_t i = 0; i < bounds.all; ++i) {
    const std::string name = i < bounds.of_client ? "a" : std::to_string(i);
    const auto place = places.Take(HttpKind::kLive, Network(name));
    ASSERT_TRUE(place) << i;
    taken.push_back(*place);
  }
  EXPECT_EQ(places.Take(HttpKind::kLive, Network("a")).error(),
            HttpPlaces::Refusal::kClientHasEnough);
  EXPECT_EQ(places.Take(HttpKind::kLive, Network("b")).error(),
            HttpPlaces::Refusal::kAllTaken);
  EXPECT_TRUE(places.Take(HttpKind::kLive, {.name = "a"}));
  EXPECT_TRUE(places.Take(HttpKind::kQuick, Network("a")));
  taken.erase(taken.begin());
  EXPECT_TRUE(places.Take(HttpKind::kLive, Network("a")));
  EXPECT_TRUE(places.Take(HttpKind::kLive, Network("b")));
}

// No more than so many answers are made at once, whoever asks.
TEST(AnswerRoomTest, BoundsMakers) {
  ResponseRoom room({.makers = 2, .bytes = 1000});
  std::atomic<int> makers = 0;
  std::atomic<int> most = 0;
  const auto make = [&] {
    const int now = ++makers;
    int before = most;
    while (now > before && !most.compare_exchange_weak(before, now)) {
    }
    std::this_thread::sleep_for(milliseconds(20));
    --makers;
    return std::string(1, 'x');
  };
  std::vector<std::thread> threads;
  std::atomic<int> made = 0;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      if (room.Make(make, [] { return false; }, Clock::now() + seconds(20))) {
        ++made;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(made, 10);
  EXPECT_EQ(most, 2);
}

// While too many bytes wait to be taken nothing is made; when they are taken it
// is, and who went away meanwhile, or had to wait too long, gets nothing.
TEST(AnswerRoomTest, BoundsBytes) {
  ResponseRoom room({.makers = 2, .bytes = 1000});
  const auto large = [] { return std::string(1000, 'x'); };
  const auto here = [] { return false; };
  auto first = room.Make(large, here, Clock::now() + seconds(20));
  ASSERT_TRUE(first);
  EXPECT_FALSE(room.Make(large, here, Clock::now() + milliseconds(10)));
  EXPECT_FALSE(
      room.Make(large, [] { return true; }, Clock::now() + seconds(20)));
  std::thread taker([&first] {
    std::this_thread::sleep_for(milliseconds(50));
    first.reset();
  });
  EXPECT_TRUE(room.Make(large, here, Clock::now() + seconds(20)));
  taker.join();
}

// What an answer throws gives its room back.
TEST(AnswerRoomTest, ExceptionsGiveRoomBack) {
  ResponseRoom room({.makers = 1, .bytes = 1000});
  const auto here = [] { return false; };
  const auto fails = []() -> ksym::Result<std::string> {
    throw std::runtime_error("x");
  };
  EXPECT_THROW(room.Make(fails, here, Clock::now() + seconds(1)),
               std::runtime_error);
  const auto works = [] { return std::string("x"); };
  EXPECT_TRUE(room.Make(works, here, Clock::now() + seconds(1)));
}

// So does an answer that cannot be made, which says why.
TEST(AnswerRoomTest, FailuresGiveRoomBack) {
  ResponseRoom room({.makers = 1, .bytes = 1000});
  const auto here = [] { return false; };
  const auto fails = []() -> ksym::Result<std::string> {
    return ksym::Fail(ksym::ErrorCode::kLimit, "too much");
  };
  for (int i = 0; i < 2; ++i) {
    const auto made = room.Make(fails, here, Clock::now() + seconds(1));
    ASSERT_TRUE(made);
    ASSERT_FALSE(*made);
    EXPECT_EQ(made->error().message(), "too much");
  }
}

class HttpArrivalsTest : public testing::Test {
 protected:
  // The client's end.
  ksym::UniqueFd Connect(const std::string& name) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()),
              0);
    arrivals_.Add(ksym::UniqueFd(ends[0]), Network(name), now_);
    return ksym::UniqueFd(ends[1]);
  }
  static void Send(const ksym::UniqueFd& fd, const std::string& text) {
    ASSERT_EQ(::send(fd.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  std::vector<HttpArrivals::Arrived> Take() {
    std::vector<pollfd> entries;
    arrivals_.AppendTo(entries);
    ::poll(entries.data(), entries.size(), 0);
    return arrivals_.Take(entries.data(), now_);
  }

  HttpArrivals arrivals_;
  Clock::time_point now_ = Clock::now();
};

// The client that has most of the places loses its oldest one, and no other.
TEST_F(HttpArrivalsTest, TheGreediestMakesRoom) {
  const ksym::UniqueFd other = Connect("b");
  std::vector<ksym::UniqueFd> greedy;
  for (size_t i = 0; i < 3 * HttpArrivals::kMax; ++i) {
    greedy.push_back(Connect("a"));
  }
  EXPECT_EQ(arrivals_.size(), HttpArrivals::kMax);
  Send(other, "GET / HTTP/1.1\r\n\r\n");
  Send(greedy.back(), "GET /a HTTP/1.1\r\n\r\nmore");
  const auto arrived = Take();
  ASSERT_EQ(arrived.size(), 2u);
  EXPECT_EQ(arrived[0].client.name, "b");
  EXPECT_EQ(arrived[1].head, "GET /a HTTP/1.1\r\n\r\n");
}

// A request is over at its deadline, also of a client that still sends, and
// when its client goes away.
TEST_F(HttpArrivalsTest, EndsInTime) {
  const ksym::UniqueFd slow = Connect("a");
  EXPECT_EQ(arrivals_.NextDeadline(), now_ + HttpArrivals::kRequestWithin);
  now_ += HttpArrivals::kRequestWithin - milliseconds(1);
  Send(slow, "GET / HTTP/1.1\r\n");
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(arrivals_.size(), 1u);
  now_ += milliseconds(1);
  Send(slow, "\r\n");
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(arrivals_.size(), 0u);
  Connect("b").Reset();
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(arrivals_.size(), 0u);
  EXPECT_EQ(arrivals_.NextDeadline(), Clock::time_point::max());
}

// 32 KiB that have no end are refused, one byte less is waited for.
TEST_F(HttpArrivalsTest, BoundsBytes) {
  const ksym::UniqueFd fd = Connect("a");
  Send(fd, std::string(HttpArrivals::kMaxRequestBytes - 1, 'x'));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Take().empty());
  EXPECT_EQ(arrivals_.size(), 1u);
  Send(fd, "x");
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(arrivals_.size(), 0u);
}

}  // namespace
}  // namespace profd
