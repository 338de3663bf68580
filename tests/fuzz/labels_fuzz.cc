// SPDX-License-Identifier: Apache-2.0
// Any bytes as what names containers: the first byte says if they are the name
// of a directory of logs, of a link to one or where that leads to, a process's
// environment, or what Docker or Podman keep. Whatever they are, names have the
// characters and lengths that they can have.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/labels/container_state.h"
#include "daemon/labels/environment_text.h"
#include "daemon/labels/pod_logs.h"

namespace {

void Expect(bool is_so) {
  if (!is_so) std::abort();
}

void ExpectDnsName(std::string_view name, size_t max_bytes) {
  Expect(!name.empty() && name.size() <= max_bytes);
  for (const char c : name) {
    Expect((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.');
  }
}

void ExpectDirectory(const profd::PodDirectory& directory) {
  ExpectDnsName(directory.name_space, 63);
  ExpectDnsName(directory.pod, 253);
  Expect(directory.uid.size() == 32 || directory.uid.size() == 36);
}

void ParseNames(std::string_view text) {
  if (const auto directory = profd::ParsePodDirectory(text))
    ExpectDirectory(*directory);
  if (const auto link = profd::ParseContainerLink(text)) {
    ExpectDnsName(link->name_space, 63);
    ExpectDnsName(link->pod, 253);
    ExpectDnsName(link->container, 63);
    Expect(link->id.size() == 64);
  }
  if (const auto log = profd::ParseContainerLog(text)) {
    ExpectDirectory(log->directory);
    ExpectDnsName(log->container, 63);
  }
}

void ParseVariables(std::string_view text) {
  const auto found = profd::ParseEnvironment(
      text, {.service_name = true, .resource_attributes = true});
  Expect(found.labels.size() <= profd::kMaxEnvironmentLabels);
  for (const profd::Label& label : found.labels) {
    Expect(!label.key.empty() &&
           label.key.size() <= profd::kMaxEnvironmentKeyBytes);
    Expect(!label.value.empty() &&
           label.value.size() <= profd::kMaxEnvironmentValueBytes);
    Expect(!label.key.starts_with("k8s.") && label.key != "pid");
  }
  for (size_t i = 1; i < found.labels.size(); ++i) {
    Expect(found.labels[i - 1].key < found.labels[i].key);
  }
}

void ParseStates(std::string_view text) {
  const std::string id(64, 'a');
  if (const auto name = profd::ParseDockerName(text, id)) {
    Expect(profd::IsContainerName(*name));
  }
  if (const auto names = profd::ParsePodmanNames(text)) {
    for (const auto& [key, name] : *names) {
      Expect(!key.empty() && profd::IsContainerName(name));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  switch (data[0]) {
    case 'n':
      ParseNames(text);
      break;
    case 'e':
      ParseVariables(text);
      break;
    case 's':
      ParseStates(text);
      break;
    default:
      break;
  }
  return 0;
}
