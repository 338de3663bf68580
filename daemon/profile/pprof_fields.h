// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <protozero/types.hpp>

// Field numbers of profile.proto of github.com/google/pprof, as far as they are
// written.
namespace profd::pprof {

enum class ProfileField : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14,
};

enum class ValueTypeField : protozero::pbf_tag_type { kType = 1, kUnit = 2 };

enum class SampleField : protozero::pbf_tag_type {
  kLocationId = 1,
  kValue = 2,
  kLabel = 3,
};

enum class LabelField : protozero::pbf_tag_type {
  kKey = 1,
  kStr = 2,
  kNum = 3,
};

enum class MappingField : protozero::pbf_tag_type {
  kId = 1,
  kMemoryStart = 2,
  kMemoryLimit = 3,
  kFilename = 5,
  kBuildId = 6,
  kHasFunctions = 7,
};

enum class LocationField : protozero::pbf_tag_type {
  kId = 1,
  kMappingId = 2,
  kAddress = 3,
  kLine = 4,
};

enum class LineField : protozero::pbf_tag_type {
  kFunctionId = 1,
  kLine = 2,
};

enum class FunctionField : protozero::pbf_tag_type {
  kId = 1,
  kName = 2,
  kSystemName = 3,
  kFilename = 4,
  kStartLine = 5,
};

}  // namespace profd::pprof
