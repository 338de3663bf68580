// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// What samples are added up by.
enum class SpotKind : uint8_t { kFunction, kModule, kComm, kProcess, kLine };

// "function", "module", "comm", "process" or "line"; else kInvalid.
ksym::Result<SpotKind> ParseSpotKind(std::string_view name);
std::string_view Name(SpotKind kind);

// The function in tables of samples without a frame.
inline constexpr std::string_view kNoStackName = "[no stack]";

// The name of a function in tables, printable: "Sort [libfoo.so]", or a word in
// brackets that says why it has none.
std::string FunctionOf(const Profile& profile, const Frame& frame);

// One function (module, process, line) and the samples that it was in.
struct HotSpot {
  std::string name;    // printable
  uint64_t self = 0;   // it was the innermost frame
  uint64_t total = 0;  // it was in the stack, once or more often
};

// All of them, the most self samples first, then the most in total, then by
// name. Samples without a frame are at "[no stack]". Cost: goes over every
// frame of every stack.
std::vector<HotSpot> FindHotSpots(const Profile& profile, SpotKind kind);

enum class Colours : uint8_t { kOff, kOn };

struct HotSpotTable {
  SpotKind kind = SpotKind::kFunction;
  size_t top = 0;      // rows; 0: all
  size_t columns = 0;  // of the widest line; 0: any
  Colours colours = Colours::kOff;
};

// A table for people: a line about the capture, then one for each spot. Names
// are shortened to the columns, of which numbers take 39.
void WriteHotSpots(const Profile& profile, const HotSpotTable& table,
                   OutputBuffer& out);

// What two profiles are compared by.
enum class MeasureUnit : uint8_t {
  kShares,  // of all their samples, where they do not say how they were taken
  kCpus,    // CPUs used on average
  kCpuSeconds,  // CPU time as a whole, of commands that ran until they ended
};
// "share of samples", "CPUs", "CPU seconds".
std::string_view Name(MeasureUnit unit);

// CPU time where both say for how long and how often they were sampled.
struct Measure {
  MeasureUnit unit = MeasureUnit::kShares;
  double before = 0;  // of one sample
  double after = 0;
};
Measure MeasureOf(const Profile& before, const Profile& after);

// Whether both say of which files functions are; folded stacks do not.
bool HaveModules(const Profile& before, const Profile& after);

// One spot in two profiles, in their measure.
struct SpotDifference {
  std::string name;
  double before = 0;  // self
  double after = 0;
  // The change is less than twice the standard deviation of the difference of
  // two Poisson counts: in one of 20 cases chance makes a larger one.
  bool is_within_error = false;
  double change() const { return after - before; }
};

struct Difference {
  MeasureUnit unit = MeasureUnit::kShares;
  double before = 0;  // of everything
  double after = 0;
  // The largest change first, those within the sampling error last.
  std::vector<SpotDifference> spots;
};

Difference Compare(const Profile& before, const Profile& after, SpotKind kind);

// A table for people of the spots that differ. Changes within the sampling
// error are grey and have a "~".
void WriteDifference(const Difference& difference, const HotSpotTable& table,
                     OutputBuffer& out);

}  // namespace profd
