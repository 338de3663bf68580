// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/environment_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "ksym/base/text.h"

namespace profd {
namespace {

// What profiles say of samples under these keys is found out, not claimed:
// whole keys, and the beginnings of OpenTelemetry's.
constexpr auto kOwnKeys = std::to_array<std::string_view>(
    {"cgroup", "collided", "comm", "container_id", "faulted", "host",
     "kernel_stack", "parked", "pid", "self", "tid", "truncated", "unit",
     "user_stack"});
constexpr auto kOwnPrefixes =
    std::to_array<std::string_view>({"container.", "host.", "k8s.", "ksym.",
                                     "os.", "process.", "systemd.", "thread."});

bool IsOwnKey(std::string_view key) {
  return std::ranges::find(kOwnKeys, key) != kOwnKeys.end() ||
         std::ranges::any_of(kOwnPrefixes, [&](std::string_view prefix) {
           return key.starts_with(prefix);
         });
}

bool IsKey(std::string_view key) {
  constexpr std::string_view kAll =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
  return !key.empty() && key.size() <= kMaxEnvironmentKeyBytes &&
         key.find_first_not_of(kAll) == std::string_view::npos;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Nothing: a '%' without two hexadecimal digits.
std::optional<std::string> DecodePercent(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    if (text.front() != '%') {
      decoded += text.front();
      text.remove_prefix(1);
      continue;
    }
    const std::string_view digits = text.substr(1, 2);
    const auto byte = ksym::ParseUnsigned<uint8_t>(digits, 16);
    if (digits.size() != 2 || !byte) return std::nullopt;
    decoded += static_cast<char>(*byte);
    text.remove_prefix(3);
  }
  return decoded;
}

void AddAttribute(std::string key, std::string value, EnvironmentLabels& to) {
  const bool is_taken = IsKey(key) && !IsOwnKey(key) &&
                        value.size() <= kMaxEnvironmentValueBytes &&
                        to.labels.size() < kMaxEnvironmentLabels;
  if (!is_taken) {
    ++to.refused;
    return;
  }
  // An empty value says nothing.
  if (value.empty()) return;
  to.labels.push_back({.key = std::move(key), .value = std::move(value)});
}

// False: the list is malformed.
bool AddAttributes(std::string_view list, EnvironmentLabels& to) {
  while (!list.empty()) {
    std::string_view value = Trim(ksym::TakeField(list, ','));
    if (value.empty()) continue;
    if (!value.contains('=')) return false;
    auto key = DecodePercent(Trim(ksym::TakeField(value, '=')));
    auto text = DecodePercent(Trim(value));
    if (!key || key->empty() || !text) return false;
    AddAttribute(std::move(*key), std::move(*text), to);
  }
  return true;
}

}  // namespace

EnvironmentLabels ParseEnvironment(std::string_view block,
                                   const EnvironmentChoice& choice) {
  std::optional<std::string_view> service;
  std::optional<std::string_view> attributes;
  while (!block.empty()) {
    std::string_view value = ksym::TakeField(block, '\0');
    if (!value.starts_with("OTEL_")) continue;
    const std::string_view name = ksym::TakeField(value, '=');
    // The first one counts, as it does for getenv(3).
    if (name == "OTEL_SERVICE_NAME" && !service) service = value;
    if (name == "OTEL_RESOURCE_ATTRIBUTES" && !attributes) attributes = value;
  }
  EnvironmentLabels found;
  // First, as it goes before the same key in the list.
  if (choice.service_name && service) {
    AddAttribute(std::string(kServiceLabel), std::string(*service), found);
  }
  if (choice.resource_attributes && attributes) {
    // A list with a fault is dropped whole, as OpenTelemetry's resource SDK
    // wants it.
    EnvironmentLabels listed = found;
    if (AddAttributes(*attributes, listed)) {
      found = std::move(listed);
    } else {
      found.is_malformed = true;
    }
  }
  Normalize(found.labels);
  return found;
}

}  // namespace profd
