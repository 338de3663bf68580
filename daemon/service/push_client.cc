// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/push_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <random>
#include <span>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/service/clickhouse_sender.h"
#include "daemon/service/http_server.h"
#include "daemon/service/otlp_answer.h"
#include "daemon/service/push_connection.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr std::string_view kMagic = "ksym-push 1";

// Which of pprof's values Pyroscope takes for CPU time.
constexpr std::string_view kSampleTypes =
    R"({"samples":{"units":"samples","display-name":"cpu","sampled":true}})";

// What is wrong with the request itself, and not with the way, the receiver or
// the configuration, which somebody may mend.
bool IsFaultOfEntry(int status) {
  constexpr auto kFaults = std::to_array({400, 413, 415, 422});
  return std::ranges::find(kFaults, status) != kFaults.end();
}

std::string RandomWord() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(),
                     random());
}

struct FormPart {
  std::string_view name;
  std::string_view file;
  std::string_view type;
  std::string_view content;
};

// RFC 7578. The boundary is long and random, so that no part has it.
PushConnection::Message MakeForm(std::span<const FormPart> parts) {
  const std::string boundary = "ksym-" + RandomWord();
  PushConnection::Message form;
  form.content_type = "multipart/form-data; boundary=" + boundary;
  for (const FormPart& part : parts) {
    fmt::format_to(std::back_inserter(form.body),
                   "--{}\r\nContent-Disposition: form-data; name=\"{}\"; "
                   "filename=\"{}\"\r\nContent-Type: {}\r\n\r\n{}\r\n",
                   boundary, part.name, part.file, part.type, part.content);
  }
  form.body += "--" + boundary + "--\r\n";
  return form;
}

}  // namespace

PushForm FormOf(PushProtocol protocol) {
  switch (protocol) {
    case PushProtocol::kOtlp:
      return PushForm::kOtlp;
    case PushProtocol::kClickHouse:
      return PushForm::kClickHouse;
    default:
      return PushForm::kPprof;
  }
}

std::string EncodePushEntry(const PushEntry& entry) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", kMagic, entry.begin_unix_ns,
                     entry.end_unix_ns, entry.frequency_hz, entry.hostname,
                     entry.body);
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
                   .body = std::string(bytes)};
}

class PushClient::Impl {
 public:
  Impl(PushTarget target, PushUrl url, PushConnection connection)
      : target_(std::move(target)),
        url_(std::move(url)),
        connection_(std::move(connection)),
        clickhouse_(url_.path) {}

  Outcome Send(const PushEntry& entry, std::string& why) {
    if (stopped_) {
      why = "the service ends";
      return Outcome::kTryAgain;
    }
    if (url_.protocol == PushProtocol::kClickHouse) {
      const auto failure = clickhouse_.Send(entry.body, connection_, stopped_);
      if (!failure) return Outcome::kSent;
      why = failure->why;
      return failure->is_of_batch || IsFaultOfEntry(failure->status)
                 ? Outcome::kRejected
                 : Outcome::kTryAgain;
    }
    const auto answer = connection_.Post(MessageOf(entry));
    if (!answer) {
      why = answer.error().message();
      return Outcome::kTryAgain;
    }
    if (answer->status >= 200 && answer->status < 300) {
      if (url_.protocol != PushProtocol::kOtlp) return Outcome::kSent;
      const OtlpAnswer taken = ReadOtlpAnswer(answer->body);
      if (taken.rejected_profiles == 0) return Outcome::kSent;
      why = fmt::format("{} profiles of it are not taken: {}",
                        taken.rejected_profiles, taken.message);
      return Outcome::kRejected;
    }
    why = fmt::format("status {}: {}", answer->status, answer->text);
    return IsFaultOfEntry(answer->status) ? Outcome::kRejected
                                          : Outcome::kTryAgain;
  }

  void Stop() {
    // Set before the connection is stopped: a Send() that begins after that
    // sees it.
    stopped_ = true;
    connection_.Stop();
  }

 private:
  // For the protocols with one request for each entry.
  PushConnection::Message MessageOf(const PushEntry& entry) const {
    switch (url_.protocol) {
      case PushProtocol::kPyroscope:
        return ForPyroscope(entry);
      case PushProtocol::kOtlp:
        return {.path = url_.path,
                .content_type = "application/x-protobuf",
                .body = entry.body,
                .content_encoding = "gzip",
                .wants_answer = true};
      default:
        break;
    }
    return {.path = url_.path,
            .content_type = "application/octet-stream",
            .body = entry.body};
  }

  PushConnection::Message ForPyroscope(const PushEntry& entry) const {
    const httplib::Params parameters = {
        {"name",
         fmt::format("{}{{hostname={}}}", target_.name, entry.hostname)},
        {"from", std::to_string(entry.begin_unix_ns / kNsPerSecond)},
        {"until",
         // Whole seconds; rounded up, so that a short profile is not empty.
         std::to_string((entry.end_unix_ns + kNsPerSecond - 1) / kNsPerSecond)},
        {"sampleRate", std::to_string(entry.frequency_hz)},
        {"format", "pprof"},
        {"spyName", "ksym"}};
    const auto parts =
        std::to_array<FormPart>({{.name = "profile",
                                  .file = "profile.pprof",
                                  .type = "application/octet-stream",
                                  .content = entry.body},
                                 {.name = "sample_type_config",
                                  .file = "sample_type_config.json",
                                  .type = "application/json",
                                  .content = kSampleTypes}});
    PushConnection::Message form = MakeForm(parts);
    form.path = httplib::append_query_params(url_.path, parameters);
    return form;
  }

  const PushTarget target_;
  const PushUrl url_;
  PushConnection connection_;
  ClickHouseSender clickhouse_;  // of that protocol only
  std::atomic<bool> stopped_ = false;
};

PushClient::PushClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PushClient::PushClient(PushClient&&) noexcept = default;
PushClient::~PushClient() = default;

ksym::Result<PushClient> PushClient::Make(const PushTarget& target) {
  auto url = ParsePushUrl(target.url);
  if (!url) return ksym::Fail(std::move(url.error()));
  PushConnection::Settings settings;
  if (!target.token_file.empty()) {
    auto read = ReadToken(target.token_file);
    if (!read) return ksym::Fail(std::move(read.error()));
    const bool is_login = url->protocol == PushProtocol::kClickHouse;
    (is_login ? settings.login : settings.token) = std::move(*read);
  }
  auto connection = PushConnection::Make(*url, settings);
  if (!connection) {
    return ksym::Fail(std::move(connection.error()).WithContext(target.url));
  }
  return PushClient(
      std::make_unique<Impl>(target, std::move(*url), std::move(*connection)));
}

PushClient::Outcome PushClient::Send(const PushEntry& entry, std::string& why) {
  return impl_->Send(entry, why);
}
void PushClient::Stop() { impl_->Stop(); }

}  // namespace profd
