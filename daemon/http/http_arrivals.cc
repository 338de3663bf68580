// SPDX-License-Identifier: Apache-2.0
#include "daemon/http/http_arrivals.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include "daemon/http/socket_io.h"

namespace profd {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n";
constexpr std::string_view kTooLarge =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n"
    "Content-Length: 0\r\n\r\n";

}  // namespace

void HttpArrivals::Add(ksym::UniqueFd fd, HttpClient client,
                       Clock::time_point now) {
  MakeRoom(client.way);
  arriving_.push_back({.request = {.fd = std::move(fd),
                                   .client = std::move(client),
                                   .head = {}},
                       .deadline = now + kRequestWithin});
}

// A client that sends its request at once is never met here, whoever comes.
void HttpArrivals::MakeRoom(HttpWay way) {
  std::map<std::string_view, size_t> counts;  // by client
  size_t all = 0;
  for (const Arriving& arriving : arriving_) {
    if (arriving.request.client.way != way) continue;
    ++counts[arriving.request.client.name];
    ++all;
  }
  if (all < kMax) return;
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& entry) { return entry.second; });
  const auto longest = std::ranges::find_if(arriving_, [&](const auto& entry) {
    const HttpClient& client = entry.request.client;
    return client.way == way && client.name == most->first;
  });
  arriving_.erase(longest);
}

void HttpArrivals::AppendTo(std::vector<pollfd>& entries) const {
  for (const Arriving& arriving : arriving_) {
    entries.push_back({arriving.request.fd.get(), POLLIN, 0});
  }
}

std::vector<HttpArrivals::Arrived> HttpArrivals::Take(const pollfd* entries,
                                                      Clock::time_point now) {
  std::vector<Arrived> arrived;
  for (auto it = arriving_.begin(); it != arriving_.end(); ++entries) {
    // The deadline goes first: a client that sends a byte now and then would
    // keep its place for ever.
    State state = now < it->deadline ? State::kGoesOn : State::kOver;
    if (state == State::kGoesOn && entries->revents != 0) {
      state = Read(it->request);
    }
    if (state == State::kArrived) arrived.push_back(std::move(it->request));
    it = state == State::kGoesOn ? std::next(it) : arriving_.erase(it);
  }
  return arrived;
}

HttpArrivals::State HttpArrivals::Read(Arrived& request) {
  std::array<char, 4096> buffer;
  const ssize_t size =
      ::recv(request.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return State::kGoesOn;
  if (size <= 0) return State::kOver;
  std::string& head = request.head;
  // The end may have come in two parts.
  const size_t before = head.size() - std::min(head.size(), kEnd.size() - 1);
  head.append(buffer.data(), static_cast<size_t>(size));
  const size_t end = head.find(kEnd, before);
  if (end != std::string::npos) {
    head.resize(end + kEnd.size());
    return State::kArrived;
  }
  if (head.size() < kMaxRequestBytes) return State::kGoesOn;
  // A client that does not take the answer goes without: nothing waits here.
  (void)::send(request.fd.get(), kTooLarge.data(), kTooLarge.size(),
               MSG_NOSIGNAL | MSG_DONTWAIT);
  EndAnswer(request.fd.get());
  return State::kOver;
}

HttpArrivals::Clock::time_point HttpArrivals::NextDeadline() const {
  // All have the same time, so the one that came first is the first to be late.
  return arriving_.empty() ? Clock::time_point::max()
                           : arriving_.front().deadline;
}

}  // namespace profd
