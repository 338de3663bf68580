// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/pprof.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/cgroup_path.h"
#include "daemon/output/counted_texts.h"
#include "daemon/output/gzip.h"
#include "daemon/output/numbered_texts.h"
#include "daemon/output/places.h"
#include "daemon/output/signed_number.h"
#include "daemon/profile/pprof_fields.h"
#include "daemon/profile/pprof_kind.h"
#include "daemon/profile/profile_terms.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using pprof::FunctionField;
using pprof::LabelField;
using pprof::LineField;
using pprof::LocationField;
using pprof::MappingField;
using pprof::ProfileField;
using pprof::SampleField;
using pprof::ValueTypeField;
using protozero::pbf_builder;

// Empty, so no label, where nothing is amiss.
std::string_view StateLabel(StackState state) {
  return state == StackState::kNone || state == StackState::kWhole
             ? ""
             : Name(state);
}

class Writer {
 public:
  Writer(const Profile& profile, const OutputOptions& options)
      : profile_(profile), options_(options), places_(profile) {}

  std::string Run() {
    AddValueTypes();
    AddSamples();
    AddMappings();
    AddLocations();
    AddMetadata();
    // Last: all of the others name strings.
    for (const std::string_view text : strings_.texts()) {
      out_.add_bytes(ProfileField::kStringTable, text.data(), text.size());
    }
    return std::move(bytes_);
  }

 private:
  // The number of samples of the first kind, unless they have values, then each
  // kind's value. Types are told apart by their names.
  void AddValueTypes() {
    const std::vector<SampleKind>& kinds = profile_.metadata.kinds;
    if (!kinds.front().has_values) {
      AddValueType(ProfileField::kSampleType, "samples", "count");
      ++value_types_;
    }
    for (const SampleKind& kind : kinds) {
      const bool is_count =
          &kind == kinds.data() && kind.name == "samples" && !kind.has_values;
      if (!is_count) {
        AddValueType(ProfileField::kSampleType, ksym::Printable(kind.name),
                     ksym::Printable(kind.unit));
        ++value_types_;
      }
    }
  }

  // In the order of the types.
  std::vector<int64_t> ValuesOf(SampleKindId id, uint64_t amount) const {
    const std::vector<SampleKind>& kinds = profile_.metadata.kinds;
    const size_t first = value_types_ - kinds.size();  // 1: after the number
    std::vector<int64_t> values(value_types_);
    const SampleKind& kind = kinds[id];
    const uint64_t value = ValueOf(kind, amount, amount);
    values[first + id] = ToSigned(value);
    if (id == 0 && !kind.has_values) values[0] = ToSigned(amount);
    return values;
  }

  void AddValueType(ProfileField field, std::string_view type,
                    std::string_view unit) {
    pbf_builder<ValueTypeField> value(out_, field);
    value.add_int64(ValueTypeField::kType, strings_.Id(type));
    value.add_int64(ValueTypeField::kUnit, strings_.Id(unit));
  }

  void AddSamples() {
    // Strings are numbered by first use: not in the order of the samples.
    std::vector<std::string> comms;
    comms.reserve(profile_.samples.size());
    for (const ProfileSample& sample : profile_.samples) {
      comms.push_back(ksym::Printable(profile_.String(sample.comm)));
    }
    std::ranges::sort(comms);
    for (const std::string_view text :
         {"comm", "pid", "tid", "user_stack", "kernel_stack", "truncated",
          "faulted", "collided", "self", "yes"}) {
      strings_.Id(text);
    }
    for (const std::string& comm : comms) strings_.Id(comm);
    NumberCgroups();
    NumberLabels();

    CountedTexts texts;
    for (const ProfileSample& sample : profile_.samples) {
      // In front of the message: equal ones of two kinds stay two.
      texts.buffer() += static_cast<char>(sample.kind);
      AppendSample(sample, texts.buffer());
      const bool has_value = profile_.metadata.kinds[sample.kind].has_values;
      texts.Commit(has_value ? sample.value : sample.count);
    }
    texts.SortAndMerge();
    for (const CountedTexts::Entry& entry : texts.entries()) {
      const std::string_view text = texts.Text(entry);
      std::string message(text.substr(1));
      const std::vector<int64_t> values =
          ValuesOf(static_cast<SampleKindId>(text.front()), entry.count);
      pbf_builder<SampleField> sample(message);
      sample.add_packed_int64(SampleField::kValue, values.begin(),
                              values.end());
      out_.add_message(ProfileField::kSample, message);
    }
  }

  // As above; most profiles have few of them.
  void NumberCgroups() {
    std::set<std::string_view> paths;
    for (const ProfileSample& sample : profile_.samples) {
      if (sample.cgroup != 0) paths.insert(profile_.String(sample.cgroup));
    }
    for (const std::string_view path : paths) {
      for (const auto& [key, value] : CgroupLabels(path, options_.labels)) {
        strings_.Id(key);
        strings_.Id(ksym::Printable(value));
      }
    }
  }

  // In the order of their texts, as label sets are numbered by first use.
  void NumberLabels() {
    std::set<std::string> texts;
    for (LabelSetId id = 0; id < profile_.label_sets.size(); ++id) {
      for (const auto& [key, value] : profile_.label_sets.Get(id)) {
        texts.insert(ksym::Printable(profile_.String(key)));
        texts.insert(ksym::Printable(profile_.String(value)));
      }
    }
    for (const std::string& text : texts) strings_.Id(text);
  }

  // Everything but the values.
  void AppendSample(const ProfileSample& sample, std::string& buffer) {
    location_ids_.clear();
    places_.AppendLocations(sample, location_ids_);
    pbf_builder<SampleField> out(buffer);
    out.add_packed_uint64(SampleField::kLocationId, location_ids_.begin(),
                          location_ids_.end());
    const SampleLabels& labels = options_.labels;
    if (labels.host) {
      AddLabel(out, "host", ksym::Printable(profile_.metadata.hostname));
    }
    if (labels.comm) {
      AddLabel(out, "comm", ksym::Printable(profile_.String(sample.comm)));
    }
    if (labels.pid) AddLabel(out, "pid", sample.pid);
    if (sample.pid != 0 && sample.pid == labels.self_pid) {
      AddLabel(out, "self", "yes");
    }
    if (options_.by == OutputOptions::By::kTid) {
      AddLabel(out, "tid", sample.tid);
    }
    if (sample.parked) AddLabel(out, "parked", "yes");
    for (const auto& [key, value] :
         CgroupLabels(profile_.String(sample.cgroup), labels)) {
      AddLabel(out, key, ksym::Printable(value));
    }
    for (const auto& [key, value] : profile_.LabelsOf(sample)) {
      AddLabel(out, ksym::Printable(profile_.String(key)),
               ksym::Printable(profile_.String(value)));
    }
    AddLabel(out, "user_stack", StateLabel(sample.user_state));
    AddLabel(out, "kernel_stack", StateLabel(sample.kernel_state));
  }

  void AddLabel(pbf_builder<SampleField>& sample, std::string_view key,
                std::string_view value) {
    if (value.empty()) return;
    pbf_builder<LabelField> label(sample, SampleField::kLabel);
    label.add_int64(LabelField::kKey, strings_.Id(key));
    label.add_int64(LabelField::kStr, strings_.Id(value));
  }
  void AddLabel(pbf_builder<SampleField>& sample, std::string_view key,
                uint32_t value) {
    pbf_builder<LabelField> label(sample, SampleField::kLabel);
    label.add_int64(LabelField::kKey, strings_.Id(key));
    label.add_int64(LabelField::kNum, value);
  }

  void AddMappings() {
    std::map<PlaceObject, uint64_t> limits;
    for (const Place& place : places_.all()) {
      if (place.object.filename.empty()) continue;
      uint64_t& limit = limits[place.object];
      limit = std::max(limit, place.address + 1);
    }
    if (const auto main = MainModule(profile_))
      AddMapping(*main, limits[*main]);
    for (const auto& [module, limit] : limits) {
      if (!mapping_ids_.contains(module)) AddMapping(module, limit);
    }
  }

  // Addresses of locations are offsets in the file, which pprof computes as
  // address - memory_start + file_offset.
  void AddMapping(const PlaceObject& module, uint64_t limit) {
    const uint64_t id = mapping_ids_.size() + 1;
    mapping_ids_.emplace(module, id);
    pbf_builder<MappingField> mapping(out_, ProfileField::kMapping);
    mapping.add_uint64(MappingField::kId, id);
    mapping.add_uint64(MappingField::kMemoryStart, 0);
    mapping.add_uint64(MappingField::kMemoryLimit, limit);
    mapping.add_int64(MappingField::kFilename, strings_.Id(module.filename));
    mapping.add_int64(MappingField::kBuildId, strings_.Id(module.build_id));
    mapping.add_bool(MappingField::kHasFunctions, true);
  }

  void AddLocations() {
    const std::map<PlaceFunction, uint64_t> functions = AddFunctions();
    for (size_t i = 0; i < places_.all().size(); ++i) {
      const Place& place = places_.all()[i];
      pbf_builder<LocationField> location(out_, ProfileField::kLocation);
      location.add_uint64(LocationField::kId, i + 1);
      if (!place.object.filename.empty()) {
        location.add_uint64(LocationField::kMappingId,
                            mapping_ids_.at(place.object));
      }
      location.add_uint64(LocationField::kAddress, place.address);
      for (const PlaceLine& at : place.lines) {
        pbf_builder<LineField> line(location, LocationField::kLine);
        line.add_uint64(LineField::kFunctionId, functions.at(at.function));
        if (at.line != 0) line.add_int64(LineField::kLine, at.line);
      }
    }
  }

  // Their ids.
  std::map<PlaceFunction, uint64_t> AddFunctions() {
    std::map<PlaceFunction, uint64_t> functions;
    for (const Place& place : places_.all()) {
      for (const PlaceLine& line : place.lines) {
        functions.emplace(line.function, 0);
      }
    }
    uint64_t next = 0;
    for (auto& [function, id] : functions) {
      id = ++next;
      const int64_t name = strings_.Id(function.name);
      pbf_builder<FunctionField> out(out_, ProfileField::kFunction);
      out.add_uint64(FunctionField::kId, id);
      out.add_int64(FunctionField::kName, name);
      out.add_int64(FunctionField::kSystemName, name);
      if (!function.file.empty()) {
        out.add_int64(FunctionField::kFilename, strings_.Id(function.file));
      }
      if (function.first_line != 0) {
        out.add_int64(FunctionField::kStartLine, function.first_line);
      }
    }
    return functions;
  }

  void AddMetadata() {
    const CaptureMetadata& metadata = profile_.metadata;
    out_.add_int64(ProfileField::kTimeNanos, ToSigned(metadata.start_unix_ns));
    out_.add_int64(ProfileField::kDurationNanos,
                   ToSigned(metadata.duration_ns));
    const SampleKind& kind = metadata.kinds.front();
    const std::string name = ksym::Printable(kind.name);
    AddValueType(ProfileField::kPeriodType, name, ksym::Printable(kind.unit));
    out_.add_int64(ProfileField::kPeriod, ToSigned(UnitsPerSample(kind)));
    AddComments();
    out_.add_int64(ProfileField::kDefaultSampleType, strings_.Id(name));
  }

  void AddComments() {
    const CaptureMetadata& metadata = profile_.metadata;
    const Accounting& accounting = profile_.accounting;
    AddComment(fmt::format("ksym-profile {}, event {}, CPUs {}",
                           metadata.version, metadata.kinds.front().event,
                           metadata.cpus));
    AddComment(fmt::format("{}, Linux {} {}", metadata.hostname,
                           metadata.kernel_release, metadata.architecture));
    AddComment(fmt::format("samples: {} taken, {} emitted, {} lost",
                           accounting.taken, accounting.emitted,
                           accounting.lost()));
    if (!IsOneEventKind(metadata.kinds)) {
      for (const SampleKind& kind : metadata.kinds) {
        AddComment(PprofKindComment(kind));
      }
    }
    if (const ThreadSums& sums = profile_.thread_sums; sums.count != 0) {
      AddComment(fmt::format(
          "{} threads: {} ns running, {} ns runnable, {} ns blocked",
          sums.count, sums.sum.running_ns, sums.sum.runnable_ns,
          sums.sum.blocked_ns));
    }
    AddCauses<LossCause>("lost", accounting.lost_by_cause);
    AddCauses<DamageCause>("damaged", accounting.damaged_by_cause);
    for (const std::string& warning : metadata.warnings) {
      AddComment("warning: " + warning);
    }
  }

  template <typename Cause, size_t kCauses>
  void AddCauses(std::string_view what,
                 const std::array<uint64_t, kCauses>& counts) {
    for (size_t i = 0; i < kCauses; ++i) {
      if (counts[i] == 0) continue;
      AddComment(fmt::format("{}: {} {}", what, counts[i],
                             Name(static_cast<Cause>(i))));
    }
  }

  void AddComment(std::string_view text) {
    out_.add_int64(ProfileField::kComment, strings_.Id(ksym::Printable(text)));
  }

  const Profile& profile_;
  const OutputOptions& options_;
  std::string bytes_;
  pbf_builder<ProfileField> out_{bytes_};
  NumberedTexts strings_;
  Places places_;
  std::map<PlaceObject, uint64_t> mapping_ids_;
  std::vector<uint64_t> location_ids_;  // room for one stack
  size_t value_types_ = 0;
};

}  // namespace

std::string RenderPprof(const Profile& profile, const OutputOptions& options) {
  return Gzip(Writer(profile, options).Run());
}

}  // namespace profd
