// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/pprof_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <protozero/pbf_message.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/input/checked_message.h"
#include "daemon/input/gunzip.h"
#include "daemon/input/input_builder.h"
#include "daemon/input/pprof_kinds.h"
#include "daemon/profile/pprof_fields.h"
#include "ksym/base/keyed_hash.h"

namespace profd {
namespace {

using checked_message::Bytes;
using checked_message::Expect;
using checked_message::Nested;
using checked_message::Refuse;
using checked_message::Signed;
using checked_message::Unsigned;
using checked_message::Wrong;
using pprof::FunctionField;
using pprof::LabelField;
using pprof::LineField;
using pprof::LocationField;
using pprof::MappingField;
using pprof::ProfileField;
using pprof::SampleField;
using pprof::ValueTypeField;
using protozero::pbf_message;

// A small file cannot unpack to more than a large one has: what is in it takes
// several times as much memory again.
constexpr size_t kMaxUnpackedBytes = size_t{1} << 30;
constexpr size_t kSmallBytes = size_t{32} << 20;
constexpr size_t kMaxRatio = 64;
size_t MaxUnpackedBytes(size_t packed) {
  return std::min(kMaxUnpackedBytes, std::max(kSmallBytes, packed * kMaxRatio));
}

// Places that have many inlined calls, and stacks of many such places, could
// have frames without end.
constexpr size_t kMaxLinesOfLocation = 4096;
constexpr size_t kMaxFramesOfStack = size_t{1} << 16;
constexpr size_t kMaxFramesPerByte = 16;  // of the file, over all stacks
constexpr size_t kFewFrames = size_t{1} << 20;

struct Function {
  std::string_view name;
  std::string_view file;
};

struct Mapping {
  std::string_view path;
  std::string_view build_id;
};

// The frames of one location, innermost first.
struct Location {
  std::vector<FrameId> frames;
  bool is_kernel = false;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  ksym::Result<Profile> Run() {
    ReadStrings();
    // Fields come in any order, so each table is read before those that name
    // it.
    ReadTables();
    ChooseKinds();
    ReadLocations();
    pbf_message<ProfileField> message(bytes_.data(), bytes_.size());
    while (message.next(ProfileField::kSample)) ReadSample(Nested(message));
    return std::move(builder_).Finish(std::move(metadata_));
  }

 private:
  std::string_view String(int64_t index) const {
    if (index < 0 || static_cast<uint64_t>(index) >= strings_.size()) {
      Refuse(fmt::format("a string has the number {}, of {}", index,
                         strings_.size()));
    }
    return strings_[static_cast<size_t>(index)];
  }

  // They may come last and everything else names them.
  void ReadStrings() {
    pbf_message<ProfileField> message(bytes_.data(), bytes_.size());
    while (message.next(ProfileField::kStringTable)) {
      strings_.push_back(Bytes(message));
    }
    if (strings_.empty()) Refuse("it has no strings: not a pprof profile");
  }

  void ReadTables() {
    pbf_message<ProfileField> message(bytes_.data(), bytes_.size());
    while (message.next()) {
      switch (message.tag()) {
        case ProfileField::kSampleType:
          types_.all.push_back(ReadValueType(Nested(message)));
          break;
        case ProfileField::kMapping:
          ReadMapping(Nested(message));
          break;
        case ProfileField::kFunction:
          ReadFunction(Nested(message));
          break;
        case ProfileField::kTimeNanos:
          metadata_.start_unix_ns =
              static_cast<uint64_t>(std::max<int64_t>(Signed(message), 0));
          break;
        case ProfileField::kDurationNanos:
          metadata_.duration_ns =
              static_cast<uint64_t>(std::max<int64_t>(Signed(message), 0));
          break;
        case ProfileField::kPeriodType:
          types_.period_type = ReadValueType(Nested(message));
          break;
        case ProfileField::kPeriod:
          types_.period =
              static_cast<uint64_t>(std::max<int64_t>(Signed(message), 0));
          break;
        case ProfileField::kComment:
          ReadNumbers(message, [&](uint64_t index) {
            types_.comments.push_back(String(static_cast<int64_t>(index)));
          });
          break;
        case ProfileField::kDefaultSampleType:
          types_.default_name = String(Signed(message));
          break;
        default:
          message.skip();
      }
    }
  }

  PprofTypes::Type ReadValueType(pbf_message<ValueTypeField> message) const {
    PprofTypes::Type type;
    while (message.next()) {
      if (message.tag() == ValueTypeField::kType) {
        type.name = String(Signed(message));
      } else if (message.tag() == ValueTypeField::kUnit) {
        type.unit = String(Signed(message));
      } else {
        message.skip();
      }
    }
    return type;
  }

  void ReadMapping(pbf_message<MappingField> message) {
    uint64_t id = 0;
    Mapping mapping;
    while (message.next()) {
      if (message.tag() == MappingField::kId) {
        id = Unsigned(message);
      } else if (message.tag() == MappingField::kFilename) {
        mapping.path = String(Signed(message));
      } else if (message.tag() == MappingField::kBuildId) {
        mapping.build_id = String(Signed(message));
      } else {
        message.skip();
      }
    }
    mappings_[id] = mapping;
  }

  void ReadFunction(pbf_message<FunctionField> message) {
    uint64_t id = 0;
    Function function;
    while (message.next()) {
      if (message.tag() == FunctionField::kId) {
        id = Unsigned(message);
      } else if (message.tag() == FunctionField::kName) {
        function.name = String(Signed(message));
      } else if (message.tag() == FunctionField::kFilename) {
        function.file = String(Signed(message));
      } else {
        message.skip();
      }
    }
    functions_[id] = function;
  }

  void ChooseKinds() {
    if (types_.all.empty()) Refuse("it names no type of its values");
    PprofKinds found = FindPprofKinds(types_);
    metadata_.kinds = std::move(found.kinds);
    sources_ = std::move(found.sources);
    for (const std::string_view type : found.left_out) {
      builder_.LeaveOut(fmt::format("the values \"{}\"", type),
                        "there are too many types");
    }
  }

  void ReadLocations() {
    pbf_message<ProfileField> message(bytes_.data(), bytes_.size());
    while (message.next(ProfileField::kLocation)) {
      ReadLocation(Nested(message));
    }
  }

  void ReadLocation(pbf_message<LocationField> message) {
    uint64_t id = 0;
    uint64_t mapping_id = 0;
    uint64_t address = 0;
    std::vector<InputFrame> lines;
    while (message.next()) {
      switch (message.tag()) {
        case LocationField::kId:
          id = Unsigned(message);
          break;
        case LocationField::kMappingId:
          mapping_id = Unsigned(message);
          break;
        case LocationField::kAddress:
          address = Unsigned(message);
          break;
        case LocationField::kLine:
          if (lines.size() == kMaxLinesOfLocation) {
            Refuse(fmt::format("location {} has more than {} lines", id,
                               kMaxLinesOfLocation));
          }
          lines.push_back(ReadLine(Nested(message)));
          break;
        default:
          message.skip();
      }
    }
    const auto mapping = mappings_.find(mapping_id);
    AddLocation(id, mapping == mappings_.end() ? Mapping() : mapping->second,
                address, std::move(lines));
  }

  InputFrame ReadLine(pbf_message<LineField> message) const {
    InputFrame frame;
    while (message.next()) {
      if (message.tag() == LineField::kFunctionId) {
        const uint64_t id = Unsigned(message);
        const auto function = functions_.find(id);
        if (function == functions_.end()) {
          Refuse(fmt::format("there is no function {}", id));
        }
        frame.name = function->second.name;
        frame.file = function->second.file;
      } else if (message.tag() == LineField::kLine) {
        const int64_t line = Signed(message);
        frame.line = static_cast<uint32_t>(
            std::clamp<int64_t>(line, 0, std::numeric_limits<uint32_t>::max()));
      } else {
        message.skip();
      }
    }
    return frame;
  }

  void AddLocation(uint64_t id, const Mapping& mapping, uint64_t address,
                   std::vector<InputFrame> lines) {
    Location& location = locations_[id];
    location.frames.clear();
    location.is_kernel = InputBuilder::IsKernelModule(mapping.path);
    std::string unnamed = "[unknown]";
    if (lines.empty()) {
      if (!mapping.path.empty() && mapping.path.front() != '[') {
        unnamed = fmt::format("[{}]",
                              mapping.path.substr(mapping.path.rfind('/') + 1));
      }
      lines.push_back({.name = unnamed});
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      InputFrame& frame = lines[i];
      frame.object = mapping.path;
      if (mapping.path.starts_with("[kernel")) frame.object = "[kernel]";
      frame.build_id = mapping.build_id;
      frame.kind =
          location.is_kernel ? KernelKindOf(frame.object) : &kUserFrame;
      if (i + 1 < lines.size()) frame.kind = frame.kind->inlined;
      frame.kind = InputBuilder::KindOf(frame);
      frame.reason = InputBuilder::ReasonOf(frame.name);
      frame.file_offset = location.is_kernel ? 0 : address;
      location.frames.push_back(builder_.AddFrame(frame));
    }
  }

  struct Owner {
    std::string_view comm;
    std::string_view cgroup;
    LabelSet labels = {};
    uint32_t pid = 0;
    uint32_t tid = 0;
    bool parked = false;
  };

  void ReadLabel(pbf_message<LabelField> message, Owner& owner) const {
    std::string_view key;
    std::string_view text;
    int64_t number = 0;
    while (message.next()) {
      if (message.tag() == LabelField::kKey) {
        key = String(Signed(message));
      } else if (message.tag() == LabelField::kStr) {
        text = String(Signed(message));
      } else if (message.tag() == LabelField::kNum) {
        number = Signed(message);
      } else {
        message.skip();
      }
    }
    const auto id = static_cast<uint32_t>(
        std::clamp<int64_t>(number, 0, std::numeric_limits<uint32_t>::max()));
    if (key == "comm") owner.comm = text;
    if (key == "cgroup") owner.cgroup = text;
    if (InputBuilder::IsOurLabel(key) && !text.empty()) {
      owner.labels.push_back(
          {.key = std::string(key), .value = std::string(text)});
    }
    if (key == "pid") owner.pid = id;
    if (key == "tid") owner.tid = id;
    if (key == "parked") owner.parked = text == "yes";
  }

  void ReadSample(pbf_message<SampleField> message) {
    Owner owner;
    std::vector<int64_t> values;
    user_.clear();
    kernel_.clear();
    while (message.next()) {
      switch (message.tag()) {
        case SampleField::kLocationId:
          ReadStack(message);
          break;
        case SampleField::kValue:
          ReadNumbers(message, [&](uint64_t value) {
            values.push_back(static_cast<int64_t>(value));
          });
          break;
        case SampleField::kLabel:
          ReadLabel(Nested(message), owner);
          break;
        default:
          message.skip();
      }
    }
    if (sources_.front().type >= values.size()) {
      Refuse(fmt::format("a sample has {} values, of {} types", values.size(),
                         types_.all.size()));
    }
    if (values[sources_.front().type] < 0) {
      builder_.LeaveOut("a sample", "its value is below 0, as in differences");
      return;
    }
    if (owner.comm.empty()) owner.comm = MainProgram();
    InputSample sample = {.comm = owner.comm,
                          .pid = owner.pid,
                          .tid = owner.tid,
                          .cgroup = owner.cgroup,
                          .labels = builder_.AddLabels(std::move(owner.labels)),
                          .user = user_,
                          .kernel = kernel_,
                          .user_state = InputBuilder::StateOf(user_),
                          .kernel_state = InputBuilder::StateOf(kernel_),
                          .parked = owner.parked};
    for (size_t i = 0; i < sources_.size(); ++i) {
      const size_t type = sources_[i].type;
      const int64_t value = type < values.size() ? values[type] : 0;
      sample.kind = static_cast<SampleKindId>(i);
      AddValue(sample, static_cast<uint64_t>(std::max<int64_t>(value, 0)));
    }
  }

  void AddValue(InputSample sample, uint64_t value) {
    const uint64_t per_sample = sources_[sample.kind].per_sample;
    if (per_sample == 0) {
      sample.value = value;
    } else {
      sample.count = value / per_sample;
      if (value % per_sample != 0) {
        builder_.LeaveOut("a sample", "its value is of no whole samples");
        return;
      }
    }
    builder_.Add(sample);
  }

  // Packed or, as old writers do, one field each.
  template <typename Function>
  static void ReadNumbers(protozero::pbf_reader& message, Function&& function) {
    if (message.wire_type() == protozero::pbf_wire_type::varint) {
      function(message.get_uint64());
      return;
    }
    Expect(message, protozero::pbf_wire_type::length_delimited);
    for (const uint64_t value : message.get_packed_uint64()) function(value);
  }

  void ReadStack(pbf_message<SampleField>& message) {
    ReadNumbers(message, [&](uint64_t id) {
      const auto at = locations_.find(id);
      if (at == locations_.end()) {
        Refuse(fmt::format("there is no location {}", id));
      }
      // The kernel's are in front; what follows the first user frame stays.
      auto& stack = at->second.is_kernel && user_.empty() ? kernel_ : user_;
      CountFrames(at->second.frames.size());
      stack.insert(stack.end(), at->second.frames.begin(),
                   at->second.frames.end());
    });
  }

  void CountFrames(size_t more) {
    frames_ += more;
    if (user_.size() + kernel_.size() + more > kMaxFramesOfStack) {
      Refuse(fmt::format("a stack has more than {} frames", kMaxFramesOfStack));
    }
    if (frames_ > kFewFrames + kMaxFramesPerByte * bytes_.size()) {
      Refuse("its stacks have far more frames than it has bytes");
    }
  }

  std::string_view MainProgram() const {
    // It is the main program's (profile.proto of pprof).
    const auto first = mappings_.find(1);
    if (first == mappings_.end()) return "pprof";
    const std::string_view path = first->second.path;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.empty() ? "pprof" : name;
  }

  std::string_view bytes_;
  InputBuilder builder_;
  CaptureMetadata metadata_;
  std::vector<std::string_view> strings_;
  PprofTypes types_;
  std::vector<PprofKinds::Source> sources_;  // by kind
  std::unordered_map<uint64_t, Mapping, ksym::NumberHash> mappings_;
  std::unordered_map<uint64_t, Function, ksym::NumberHash> functions_;
  std::unordered_map<uint64_t, Location, ksym::NumberHash> locations_;
  size_t frames_ = 0;          // of all stacks
  std::vector<FrameId> user_;  // of one sample
  std::vector<FrameId> kernel_;
};

}  // namespace

ksym::Result<Profile> ReadPprof(std::string_view bytes) {
  std::string unpacked;
  if (bytes.starts_with("\x1f\x8b")) {
    auto result = Gunzip(bytes, MaxUnpackedBytes(bytes.size()));
    if (!result) return ksym::Fail(std::move(result.error()));
    unpacked = std::move(*result);
    bytes = unpacked;
  }
  try {
    return Reader(bytes).Run();
  } catch (const protozero::exception& error) {
    return ksym::Fail(ksym::ErrorCode::kCorrupt,
                      fmt::format("no pprof profile: {}", error.what()));
  } catch (const Wrong& wrong) {
    return ksym::Fail(ksym::ErrorCode::kCorrupt, wrong.message);
  }
}

}  // namespace profd
