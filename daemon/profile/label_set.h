// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

// What is known of a process by other means than the samples: a pod's name, a
// service's. Keys are OpenTelemetry's (semantic conventions of resources).
struct Label {
  std::string key;
  std::string value;

  friend auto operator<=>(const Label&, const Label&) = default;
};

// In the order of the keys, each of which is there once.
using LabelSet = std::vector<Label>;

// Puts the labels in order. A key that is there more than once has the value
// that came first.
void Normalize(LabelSet& labels);

// `labels`, and of `others` those whose keys these lack. Both are in order.
LabelSet MergeLabels(const LabelSet& labels, const LabelSet& others);

// Memory of the labels, in bytes.
size_t BytesOf(const LabelSet& labels);

// The value of a key; empty: it is not there.
std::string_view FindLabel(const LabelSet& labels, std::string_view key);

// The keys that this project makes itself, which no process may claim.
inline constexpr std::string_view kNamespaceLabel = "k8s.namespace.name";
inline constexpr std::string_view kPodLabel = "k8s.pod.name";
inline constexpr std::string_view kPodContainerLabel = "k8s.container.name";
inline constexpr std::string_view kContainerLabel = "container.name";
// What a process says of itself.
inline constexpr std::string_view kServiceLabel = "service.name";

}  // namespace profd
