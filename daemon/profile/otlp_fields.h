// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <protozero/types.hpp>

// Field numbers of OpenTelemetry's profiles, version 1.11 of
// github.com/open-telemetry/opentelemetry-proto: the messages of
// profiles/v1development/profiles.proto, collector/profiles/v1development/
// profiles_service.proto, common/v1/common.proto and
// resource/v1/resource.proto, as far as they are written or read.
namespace profd::otlp {

using Tag = protozero::pbf_tag_type;

// Also of ExportProfilesServiceRequest.
enum class DataField : Tag { kResourceProfiles = 1, kDictionary = 2 };

enum class DictionaryField : Tag {
  kMappings = 1,
  kLocations = 2,
  kFunctions = 3,
  kLinks = 4,
  kStrings = 5,
  kAttributes = 6,
  kStacks = 7,
};

enum class ResourceProfilesField : Tag { kResource = 1, kScopeProfiles = 2 };
enum class ResourceField : Tag { kAttributes = 1 };
enum class ScopeProfilesField : Tag { kScope = 1, kProfiles = 2 };
enum class ScopeField : Tag { kName = 1, kVersion = 2, kAttributes = 3 };

enum class ProfileField : Tag {
  kSampleType = 1,
  kSamples = 2,
  kTimeUnixNano = 3,
  kDurationNano = 4,
  kPeriodType = 5,
  kPeriod = 6,
};

enum class ValueTypeField : Tag { kType = 1, kUnit = 2 };
enum class SampleField : Tag { kStack = 1, kValues = 2, kAttributes = 3 };

enum class MappingField : Tag {
  kMemoryStart = 1,
  kMemoryLimit = 2,
  kFileOffset = 3,
  kFilename = 4,
  kAttributes = 5,
};

enum class StackField : Tag { kLocations = 1 };

enum class LocationField : Tag {
  kMapping = 1,
  kAddress = 2,
  kLines = 3,
  kAttributes = 4,
};

enum class LineField : Tag { kFunction = 1, kLine = 2 };

enum class FunctionField : Tag {
  kName = 1,
  kSystemName = 2,
  kFilename = 3,
  kStartLine = 4,
};

// KeyValueAndUnit, of the dictionary.
enum class AttributeField : Tag { kKey = 1, kValue = 2 };
// KeyValue, of resources and scopes.
enum class KeyValueField : Tag { kKey = 1, kValue = 2 };
enum class AnyValueField : Tag { kString = 1, kInt = 3 };

// ExportProfilesServiceResponse and what it has.
enum class ResponseField : Tag { kPartialSuccess = 1 };
enum class PartialSuccessField : Tag {
  kRejectedProfiles = 1,
  kErrorMessage = 2,
};

}  // namespace profd::otlp
