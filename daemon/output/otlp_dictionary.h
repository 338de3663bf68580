// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/output/numbered_texts.h"
#include "daemon/output/places.h"

namespace profd {

// A key with a text or a number.
struct OtlpAttribute {
  std::string key;
  std::variant<std::string, int64_t> value;
  auto operator<=>(const OtlpAttribute&) const = default;
};

// An attribute's AnyValue, without tag and length.
std::string OtlpValue(const OtlpAttribute& attribute);

// OpenTelemetry's ProfilesDictionary: profiles of one message refer to what is
// in it by number. The zero value is the first of each table. Not
// thread-safe.
class OtlpDictionary {
 public:
  explicit OtlpDictionary(const Places& places) : places_(places) {}

  // Numbers in the order of first use.
  int32_t TextId(std::string_view text) {
    return static_cast<int32_t>(texts_.Id(text));
  }
  int32_t AttributeId(const OtlpAttribute& attribute);
  // The locations as Places counts them, leaf first; none: 0.
  int32_t StackId(const std::vector<uint64_t>& locations);

  // The whole message. Uses all places, also of stacks that nobody named.
  std::string Encode();

 private:
  void AddMappings(std::string& out);
  void AddFunctions(std::string& out);
  void AddLocations(std::string& out);
  void AddStacks(std::string& out) const;
  void AddAttributes(std::string& out);

  const Places& places_;
  NumberedTexts texts_;
  std::map<OtlpAttribute, int32_t> attribute_ids_;
  std::vector<OtlpAttribute> attributes_;  // that of id 1 is the first
  std::map<std::vector<uint64_t>, int32_t> stack_ids_;
  std::vector<const std::vector<uint64_t>*> stacks_;  // as above
  std::map<PlaceObject, int32_t> mapping_ids_;
  std::map<PlaceFunction, int32_t> function_ids_;
};

}  // namespace profd
