// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/otlp.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/otlp_dictionary.h"
#include "daemon/output/places.h"
#include "daemon/output/resource_owner.h"
#include "daemon/output/signed_number.h"
#include "daemon/profile/otlp_fields.h"
#include "daemon/profile/profile_terms.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using otlp::DataField;
using otlp::KeyValueField;
using otlp::ProfileField;
using otlp::ResourceField;
using otlp::ResourceProfilesField;
using otlp::SampleField;
using otlp::ScopeField;
using otlp::ScopeProfilesField;
using otlp::ValueTypeField;
using protozero::pbf_builder;

constexpr std::string_view kScopeName = "ksym";

// OpenTelemetry's words for what uname(2) says.
std::string_view ArchitectureWord(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return machine;
}

// Everything about a sample that equal ones share, within a resource.
struct SampleKey {
  SampleKindId kind = 0;
  std::vector<uint64_t> locations;
  std::vector<OtlpAttribute> attributes;
  auto operator<=>(const SampleKey&) const = default;
};
using Amounts = std::map<SampleKey, uint64_t>;

// How a kind's values are spelled.
struct KindTerms {
  std::string type;
  std::string unit;
  bool counts_samples = false;
};

// Receivers take samples with a period in nanoseconds for CPU time.
KindTerms TermsOf(const SampleKind& kind) {
  if (!kind.has_values && AddsUpToCpus(kind)) {
    return {.type = "samples", .unit = "count", .counts_samples = true};
  }
  return {.type = ksym::Printable(kind.name),
          .unit = ksym::Printable(kind.unit)};
}

class OtlpWriter {
 public:
  OtlpWriter(const Profile& profile, const OutputOptions& options)
      : profile_(profile), options_(options), places_(profile) {}

  std::string Run() {
    for (const ProfileSample& sample : profile_.samples) AddSample(sample);
    // The time was looked at, also where nothing ran.
    if (owners_.empty()) owners_[{}];
    std::string bytes;
    pbf_builder<DataField> out(bytes);
    for (const auto& [owner, amounts] : owners_) {
      out.add_message(DataField::kResourceProfiles,
                      EncodeResource(owner, amounts));
    }
    // Last: all of the others refer to it.
    out.add_message(DataField::kDictionary, dictionary_.Encode());
    return bytes;
  }

 private:
  void AddSample(const ProfileSample& sample) {
    SampleKey key = {.kind = sample.kind,
                     .locations = {},
                     .attributes = AttributesOf(sample)};
    places_.AppendLocations(sample, key.locations);
    const bool has_value = profile_.metadata.kinds[sample.kind].has_values;
    owners_[OwnerOf(profile_, sample, options_.labels)][std::move(key)] +=
        has_value ? sample.value : sample.count;
  }

  std::vector<OtlpAttribute> AttributesOf(const ProfileSample& sample) const {
    std::vector<OtlpAttribute> attributes;
    const auto add = [&](std::string_view key, std::string text) {
      if (text.empty()) return;
      attributes.push_back({.key = std::string(key), .value = std::move(text)});
    };
    const auto add_number = [&](std::string_view key, uint32_t number) {
      attributes.push_back({.key = std::string(key), .value = int64_t{number}});
    };
    const SampleLabels& labels = options_.labels;
    if (labels.comm) {
      add("thread.name", ksym::Printable(profile_.String(sample.comm)));
    }
    if (labels.pid) add_number("process.pid", sample.pid);
    if (options_.by == OutputOptions::By::kTid) {
      add_number("thread.id", sample.tid);
    }
    if (labels.cgroup) {
      add("ksym.cgroup", ksym::Printable(profile_.String(sample.cgroup)));
    }
    if (sample.parked) add("ksym.parked", "yes");
    for (const auto& [key, state] :
         {std::pair("ksym.user_stack", sample.user_state),
          std::pair("ksym.kernel_stack", sample.kernel_state)}) {
      if (state == StackState::kNone || state == StackState::kWhole) continue;
      add(key, std::string(Name(state)));
    }
    return attributes;
  }

  std::string EncodeResource(const ResourceOwner& owner,
                             const Amounts& amounts) {
    std::string bytes;
    // A message has its length when its builder goes.
    AddResource(owner, amounts, bytes);
    return bytes;
  }

  void AddResource(const ResourceOwner& owner, const Amounts& amounts,
                   std::string& bytes) {
    pbf_builder<ResourceProfilesField> out(bytes);
    {
      pbf_builder<ResourceField> resource(out,
                                          ResourceProfilesField::kResource);
      for (const OtlpAttribute& attribute : ResourceAttributes(owner)) {
        AddKeyValue(resource, ResourceField::kAttributes, attribute);
      }
    }
    pbf_builder<ScopeProfilesField> scopes(
        out, ResourceProfilesField::kScopeProfiles);
    AddScope(scopes);
    // Amounts are sorted by kind. A resource without any has an empty profile.
    auto at = amounts.begin();
    do {
      const SampleKindId kind = at == amounts.end() ? 0 : at->first.kind;
      pbf_builder<ProfileField> profile(scopes, ScopeProfilesField::kProfiles);
      AddProfileHead(profile, profile_.metadata.kinds[kind]);
      for (; at != amounts.end() && at->first.kind == kind; ++at) {
        AddProfileSample(profile, at->first, at->second);
      }
    } while (at != amounts.end());
  }

  std::vector<OtlpAttribute> ResourceAttributes(
      const ResourceOwner& owner) const {
    const CaptureMetadata& metadata = profile_.metadata;
    std::vector<OtlpAttribute> attributes;
    for (auto& [key, text] : std::vector<std::pair<std::string, std::string>>{
             {"service.name", ServiceName(owner)},
             {"host.name", ksym::Printable(metadata.hostname)},
             {"host.arch",
              ksym::Printable(ArchitectureWord(metadata.architecture))},
             {"os.type", "linux"},
             {"os.version", ksym::Printable(metadata.kernel_release)},
             {"container.id", owner.container_id},
             {"k8s.pod.uid", owner.pod_uid},
             {"systemd.unit", owner.unit}}) {
      if (!text.empty()) {
        attributes.push_back({.key = key, .value = std::move(text)});
      }
    }
    for (const auto& [key, text] : owner.labels) {
      // service.name is there; a file that was read may have any other.
      if (std::ranges::find(attributes, key, &OtlpAttribute::key) ==
          attributes.end()) {
        attributes.push_back({.key = key, .value = text});
      }
    }
    return attributes;
  }

  // Tells of the whole capture, and not of the resource alone.
  void AddScope(pbf_builder<ScopeProfilesField>& scopes) const {
    pbf_builder<ScopeField> scope(scopes, ScopeProfilesField::kScope);
    scope.add_string(ScopeField::kName, kScopeName.data(), kScopeName.size());
    scope.add_string(ScopeField::kVersion, profile_.metadata.version);
    const Accounting& accounting = profile_.accounting;
    const auto add = [&](std::string key, uint64_t count) {
      AddKeyValue(scope, ScopeField::kAttributes,
                  {.key = std::move(key), .value = ToSigned(count)});
    };
    add("ksym.capture.samples.taken", accounting.taken);
    add("ksym.capture.samples.lost", accounting.lost());
    for (size_t i = 0; i < accounting.lost_by_cause.size(); ++i) {
      if (accounting.lost_by_cause[i] == 0) continue;
      add("ksym.capture.lost." + std::string(Name(static_cast<LossCause>(i))),
          accounting.lost_by_cause[i]);
    }
    std::string warnings;
    for (const std::string& warning : profile_.metadata.warnings) {
      if (!warnings.empty()) warnings += '\n';
      warnings += ksym::Printable(warning);
    }
    if (warnings.empty()) return;
    AddKeyValue(scope, ScopeField::kAttributes,
                {.key = "ksym.capture.warnings", .value = std::move(warnings)});
  }

  template <typename Field>
  static void AddKeyValue(pbf_builder<Field>& out, Field field,
                          const OtlpAttribute& attribute) {
    pbf_builder<KeyValueField> to(out, field);
    to.add_string(KeyValueField::kKey, attribute.key);
    to.add_message(KeyValueField::kValue, OtlpValue(attribute));
  }

  void AddProfileHead(pbf_builder<ProfileField>& profile,
                      const SampleKind& kind) {
    const KindTerms terms = TermsOf(kind);
    AddValueType(profile, ProfileField::kSampleType, terms.type, terms.unit);
    profile.add_fixed64(ProfileField::kTimeUnixNano,
                        profile_.metadata.start_unix_ns);
    profile.add_uint64(ProfileField::kDurationNano,
                       profile_.metadata.duration_ns);
    if (const uint64_t period = UnitsPerSample(kind); period != 0) {
      AddValueType(profile, ProfileField::kPeriodType,
                   ksym::Printable(kind.name), ksym::Printable(kind.unit));
      profile.add_int64(ProfileField::kPeriod, ToSigned(period));
    }
  }

  void AddValueType(pbf_builder<ProfileField>& profile, ProfileField field,
                    const std::string& type, const std::string& unit) {
    pbf_builder<ValueTypeField> to(profile, field);
    to.add_int32(ValueTypeField::kType, dictionary_.TextId(type));
    to.add_int32(ValueTypeField::kUnit, dictionary_.TextId(unit));
  }

  void AddProfileSample(pbf_builder<ProfileField>& profile,
                        const SampleKey& key, uint64_t amount) {
    const SampleKind& kind = profile_.metadata.kinds[key.kind];
    const int64_t value = ToSigned(
        TermsOf(kind).counts_samples ? amount : ValueOf(kind, amount, amount));
    std::vector<int32_t> attributes;
    attributes.reserve(key.attributes.size());
    for (const OtlpAttribute& attribute : key.attributes) {
      attributes.push_back(dictionary_.AttributeId(attribute));
    }
    pbf_builder<SampleField> sample(profile, ProfileField::kSamples);
    if (const int32_t stack = dictionary_.StackId(key.locations); stack != 0) {
      sample.add_int32(SampleField::kStack, stack);
    }
    sample.add_packed_int64(SampleField::kValues, &value, &value + 1);
    sample.add_packed_int32(SampleField::kAttributes, attributes.begin(),
                            attributes.end());
  }

  const Profile& profile_;
  const OutputOptions& options_;
  Places places_;
  OtlpDictionary dictionary_{places_};
  std::map<ResourceOwner, Amounts> owners_;
};

}  // namespace

std::string RenderOtlp(const Profile& profile, const OutputOptions& options) {
  return OtlpWriter(profile, options).Run();
}

}  // namespace profd
