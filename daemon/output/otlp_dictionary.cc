// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/otlp_dictionary.h"

#include <algorithm>
#include <array>
#include <protozero/pbf_builder.hpp>

#include "daemon/profile/otlp_fields.h"

namespace profd {
namespace {

using otlp::AnyValueField;
using otlp::AttributeField;
using otlp::DictionaryField;
using otlp::FunctionField;
using otlp::LineField;
using otlp::LocationField;
using otlp::MappingField;
using otlp::StackField;
using protozero::pbf_builder;

// The first element of a table, to which indices of 0 lead.
void AddZero(std::string& out, DictionaryField table) {
  pbf_builder<DictionaryField>(out).add_message(table, std::string());
}

template <typename Field>
void AddIndices(pbf_builder<Field>& out, Field field,
                const std::vector<int32_t>& indices) {
  if (!indices.empty()) {
    out.add_packed_int32(field, indices.begin(), indices.end());
  }
}

}  // namespace

std::string OtlpValue(const OtlpAttribute& attribute) {
  std::string bytes;
  pbf_builder<AnyValueField> out(bytes);
  if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    out.add_string(AnyValueField::kString, *text);
  } else {
    out.add_int64(AnyValueField::kInt, std::get<int64_t>(attribute.value));
  }
  return bytes;
}

int32_t OtlpDictionary::AttributeId(const OtlpAttribute& attribute) {
  const auto id = static_cast<int32_t>(attribute_ids_.size() + 1);
  const auto [at, is_new] = attribute_ids_.try_emplace(attribute, id);
  if (is_new) attributes_.push_back(attribute);
  return at->second;
}

int32_t OtlpDictionary::StackId(const std::vector<uint64_t>& locations) {
  if (locations.empty()) return 0;
  const auto id = static_cast<int32_t>(stack_ids_.size() + 1);
  const auto [at, is_new] = stack_ids_.try_emplace(locations, id);
  if (is_new) stacks_.push_back(&at->first);
  return at->second;
}

std::string OtlpDictionary::Encode() {
  std::string out;
  AddMappings(out);
  AddFunctions(out);
  AddLocations(out);
  AddZero(out, DictionaryField::kLinks);
  AddStacks(out);
  // The others have named attributes, and all of them strings.
  AddAttributes(out);
  pbf_builder<DictionaryField> builder(out);
  for (const std::string_view text : texts_.texts()) {
    builder.add_bytes(DictionaryField::kStrings, text.data(), text.size());
  }
  return out;
}

// Addresses of locations are offsets in the file, which is mapped from its
// begin to behind the last of them.
void OtlpDictionary::AddMappings(std::string& out) {
  AddZero(out, DictionaryField::kMappings);
  std::map<PlaceObject, uint64_t> limits;
  for (const Place& place : places_.all()) {
    if (place.object.filename.empty()) continue;
    uint64_t& limit = limits[place.object];
    limit = std::max(limit, place.address + 1);
  }
  pbf_builder<DictionaryField> builder(out);
  for (const auto& [object, limit] : limits) {
    mapping_ids_.emplace(object, static_cast<int32_t>(mapping_ids_.size() + 1));
    pbf_builder<MappingField> mapping(builder, DictionaryField::kMappings);
    mapping.add_uint64(MappingField::kMemoryLimit, limit);
    mapping.add_int32(MappingField::kFilename, TextId(object.filename));
    if (object.build_id.empty()) continue;
    AddIndices(mapping, MappingField::kAttributes,
               {AttributeId({.key = "process.executable.build_id.gnu",
                             .value = object.build_id})});
  }
}

void OtlpDictionary::AddFunctions(std::string& out) {
  AddZero(out, DictionaryField::kFunctions);
  for (const Place& place : places_.all()) {
    for (const PlaceLine& line : place.lines) {
      function_ids_.emplace(line.function, 0);
    }
  }
  pbf_builder<DictionaryField> builder(out);
  int32_t next = 0;
  for (auto& [function, id] : function_ids_) {
    id = ++next;
    pbf_builder<FunctionField> at(builder, DictionaryField::kFunctions);
    at.add_int32(FunctionField::kName, TextId(function.name));
    if (!function.file.empty()) {
      at.add_int32(FunctionField::kFilename, TextId(function.file));
    }
    if (function.first_line != 0) {
      at.add_int64(FunctionField::kStartLine, function.first_line);
    }
  }
}

void OtlpDictionary::AddLocations(std::string& out) {
  AddZero(out, DictionaryField::kLocations);
  pbf_builder<DictionaryField> builder(out);
  for (const Place& place : places_.all()) {
    pbf_builder<LocationField> at(builder, DictionaryField::kLocations);
    if (!place.object.filename.empty()) {
      at.add_int32(LocationField::kMapping, mapping_ids_.at(place.object));
    }
    if (place.address != 0) {
      at.add_uint64(LocationField::kAddress, place.address);
    }
    for (const PlaceLine& line : place.lines) {
      pbf_builder<LineField> to(at, LocationField::kLines);
      to.add_int32(LineField::kFunction, function_ids_.at(line.function));
      if (line.line != 0) to.add_int64(LineField::kLine, line.line);
    }
    if (place.frame_type.empty()) continue;
    AddIndices(at, LocationField::kAttributes,
               {AttributeId({.key = "profile.frame.type",
                             .value = std::string(place.frame_type)})});
  }
}

void OtlpDictionary::AddStacks(std::string& out) const {
  AddZero(out, DictionaryField::kStacks);
  pbf_builder<DictionaryField> builder(out);
  for (const std::vector<uint64_t>* locations : stacks_) {
    pbf_builder<StackField> stack(builder, DictionaryField::kStacks);
    stack.add_packed_int32(StackField::kLocations, locations->begin(),
                           locations->end());
  }
}

void OtlpDictionary::AddAttributes(std::string& out) {
  AddZero(out, DictionaryField::kAttributes);
  pbf_builder<DictionaryField> builder(out);
  for (const OtlpAttribute& attribute : attributes_) {
    pbf_builder<AttributeField> at(builder, DictionaryField::kAttributes);
    at.add_int32(AttributeField::kKey, TextId(attribute.key));
    at.add_message(AttributeField::kValue, OtlpValue(attribute));
  }
}

}  // namespace profd
