#include "daemon/service/push_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "daemon/service/http_server.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr time_t kConnectSeconds = 5;
constexpr time_t kAnswerSeconds = 30;
constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::string_view kMagic = "ksym-push 1";

// Which of pprof's values Pyroscope takes for CPU time.
constexpr const char* kSampleTypes =
    R"({"samples":{"units":"samples","display-name":"cpu","sampled":true}})";

// What is wrong with the request itself, and not with the way, the receiver or
// the configuration, which somebody may mend.
bool IsFaultOfEntry(int status) {
  constexpr auto kFaults = std::to_array({400, 413, 415, 422});
  return std::ranges::find(kFaults, status) != kFaults.end();
}

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
    default:
      return httplib::to_string(error);
  }
}

}  // namespace

std::string EncodePushEntry(const PushEntry& entry) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", kMagic, entry.begin_unix_ns,
                     entry.end_unix_ns, entry.frequency_hz, entry.hostname,
                     entry.pprof);
}

ksym::Result<PushEntry> DecodePushEntry(std::string_view bytes) {
  const std::string_view magic = ksym::TakeField(bytes, '\n');
  const auto begin = ksym::ParseUnsigned(ksym::TakeField(bytes, '\n'), 10);
  const auto end = ksym::ParseUnsigned(ksym::TakeField(bytes, '\n'), 10);
  const auto hz = ksym::ParseUnsigned(ksym::TakeField(bytes, '\n'), 10);
  const std::string_view hostname = ksym::TakeField(bytes, '\n');
  if (magic != kMagic || !begin || !end || !hz || bytes.empty()) {
    return ksym::Fail(ksym::ErrorCode::kCorrupt,
                      "is not a profile that waits to be sent");
  }
  return PushEntry{.begin_unix_ns = *begin,
                   .end_unix_ns = *end,
                   .frequency_hz = *hz,
                   .hostname = std::string(hostname),
                   .pprof = std::string(bytes)};
}

class PushClient::Impl {
 public:
  Impl(PushTarget target, PushUrl url, const std::string& token)
      : target_(std::move(target)), url_(std::move(url)), client_(url_.server) {
    client_.set_connection_timeout(kConnectSeconds);
    client_.set_read_timeout(kAnswerSeconds);
    client_.set_write_timeout(kAnswerSeconds);
    if (!token.empty()) client_.set_bearer_token_auth(token);
  }

  bool is_valid() const { return client_.is_valid(); }

  Outcome Send(const PushEntry& entry, std::string& why) {
    if (stopped_) {
      why = "the service ends";
      return Outcome::kTryAgain;
    }
    const httplib::Result result =
        url_.is_pyroscope
            ? SendToPyroscope(entry)
            : client_.Post(url_.path, entry.pprof, "application/octet-stream");
    if (!result) {
      why = DescribeError(result.error());
      return Outcome::kTryAgain;
    }
    if (result->status >= 200 && result->status < 300) return Outcome::kSent;
    constexpr size_t kMostText = 200;
    why = fmt::format("status {}: {}", result->status,
                      std::string_view(result->body).substr(0, kMostText));
    return IsFaultOfEntry(result->status) ? Outcome::kRejected
                                          : Outcome::kTryAgain;
  }

  void Stop() {
    stopped_ = true;
    client_.stop();
  }

 private:
  httplib::Result SendToPyroscope(const PushEntry& entry) {
    const httplib::Params parameters = {
        {"name",
         fmt::format("{}{{hostname={}}}", target_.name, entry.hostname)},
        {"from", std::to_string(entry.begin_unix_ns / kNsPerSecond)},
        {"until",
         std::to_string((entry.end_unix_ns + kNsPerSecond - 1) / kNsPerSecond)},
        {"sampleRate", std::to_string(entry.frequency_hz)},
        {"format", "pprof"},
        {"spyName", "ksym"}};
    const httplib::MultipartFormDataItems items = {
        {"profile", entry.pprof, "profile.pprof", "application/octet-stream"},
        {"sample_type_config", kSampleTypes, "sample_type_config.json",
         "application/json"}};
    return client_.Post(httplib::append_query_params(url_.path, parameters),
                        items);
  }

  const PushTarget target_;
  const PushUrl url_;
  httplib::Client client_;
  std::atomic<bool> stopped_ = false;
};

PushClient::PushClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PushClient::PushClient(PushClient&&) noexcept = default;
PushClient::~PushClient() = default;

ksym::Result<PushClient> PushClient::Make(const PushTarget& target) {
  auto url = ParsePushUrl(target.url);
  if (!url) return ksym::Fail(std::move(url.error()));
  std::string token;
  if (!target.token_file.empty()) {
    auto read = ReadToken(target.token_file);
    if (!read) return ksym::Fail(std::move(read.error()));
    token = std::move(*read);
  }
  auto impl = std::make_unique<Impl>(target, std::move(*url), token);
  if (!impl->is_valid()) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      target.url + ": is not supported");
  }
  return PushClient(std::move(impl));
}

PushClient::Outcome PushClient::Send(const PushEntry& entry, std::string& why) {
  return impl_->Send(entry, why);
}
void PushClient::Stop() { impl_->Stop(); }

}  // namespace profd
