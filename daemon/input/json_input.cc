// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/json_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/input/input_builder.h"
#include "daemon/profile/profile_terms.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/printable.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using Json = nlohmann::json;

// What is wrong, and where; caught in ReadJson and nowhere else.
struct Wrong {
  std::string message;
};

[[noreturn]] void Refuse(std::string_view where, std::string_view what) {
  throw Wrong{fmt::format("{}: {}", where, what)};
}

const Json* Member(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

std::string_view Text(const Json& object, const char* key,
                      std::string_view where) {
  const Json* value = Member(object, key);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    Refuse(fmt::format("{}.{}", where, key), "is no text");
  }
  return value->get_ref<const std::string&>();
}

// As outputs show it: what differs here differs there.
std::string PrintableText(const Json& object, const char* key,
                          std::string_view where) {
  return ksym::Printable(Text(object, key, where));
}

// 0 where it is absent.
uint64_t Number(const Json& object, const char* key, std::string_view where,
                uint64_t most = std::numeric_limits<uint64_t>::max()) {
  const Json* value = Member(object, key);
  if (value == nullptr) return 0;
  if (!value->is_number_unsigned() || value->get<uint64_t>() > most) {
    Refuse(fmt::format("{}.{}", where, key), "is no number of its range");
  }
  return value->get<uint64_t>();
}

uint32_t Number32(const Json& object, const char* key, std::string_view where) {
  return static_cast<uint32_t>(
      Number(object, key, where, std::numeric_limits<uint32_t>::max()));
}

// "0x1f"
uint64_t Hex(const Json& object, const char* key, std::string_view where) {
  std::string_view text = Text(object, key, where);
  if (text.empty()) return 0;
  const bool has_prefix = text.starts_with("0x");
  if (has_prefix) text.remove_prefix(2);
  const auto value = ksym::ParseUnsigned(text, 16);
  if (!has_prefix || !value) {
    Refuse(fmt::format("{}.{}", where, key), "is no number such as \"0x1f\"");
  }
  return *value;
}

const Json& Array(const Json& object, const char* key, std::string_view where) {
  const Json* value = Member(object, key);
  if (value == nullptr || !value->is_array()) {
    Refuse(where, fmt::format("has no list \"{}\"", key));
  }
  return *value;
}

// A mark that is there or not.
bool IsTrue(const Json& object, const char* key) {
  const Json* value = Member(object, key);
  return value != nullptr && *value == true;
}

ksym::Unresolved ReasonNamed(std::string_view name) {
  if (name.empty()) return ksym::Unresolved::kNone;
  for (int i = 0; i <= static_cast<int>(ksym::Unresolved::kNotInTime); ++i) {
    const auto reason = static_cast<ksym::Unresolved>(i);
    if (ksym::UnresolvedName(reason) == name) return reason;
  }
  return ksym::Unresolved::kNoSymbol;  // of a later version
}

// "kind" and the keys that tell kinds of one name apart.
const FrameKind* FrameKindOf(const Json& frame, std::string_view where) {
  const FrameKind* kind =
      FindFrameKind(Text(frame, "kind", where), Text(frame, "module", where));
  if (kind == nullptr) Refuse(where, "is of an unknown kind");
  if (!IsTrue(frame, "inlined")) return kind;
  if (kind->inlined == nullptr)
    Refuse(where, "is of a kind that is not inlined");
  return kind->inlined;
}

StackState StateNamed(std::string_view name, std::string_view where) {
  const auto state = StackStateNamed(name);
  if (!state) Refuse(where, "has an unknown state of a stack");
  return *state;
}

// A broken stack may say why.
StackState UserState(const Json& stack, std::string_view where) {
  const StackState state = StateNamed(Text(stack, "user_state", where), where);
  const std::string_view end = Text(stack, "user_end", where);
  if (state != StackState::kBroken || end.empty()) return state;
  for (size_t i = 0; i < kStackEnds; ++i) {
    const auto cause = static_cast<StackEnd>(i);
    if (IsBroken(cause) && Name(cause) == end) return StateOf(cause);
  }
  Refuse(where, "has an unknown end of a stack");
}

template <typename Cause, size_t kCauses>
void ReadCauses(const Json& object, const char* key, std::string_view where,
                std::array<uint64_t, kCauses>& counts) {
  const Json* causes = Member(object, key);
  if (causes == nullptr) return;
  if (!causes->is_object()) Refuse(where, "has causes that are no object");
  for (size_t i = 0; i < kCauses; ++i) {
    const std::string name(Name(static_cast<Cause>(i)));
    counts[i] = Number(*causes, name.c_str(), where);
  }
}

class Reader {
 public:
  explicit Reader(const Json& document) : document_(document) {}

  ksym::Result<Profile> Run() {
    const Json* metadata = Member(document_, "metadata");
    const auto format = metadata != nullptr && metadata->is_object()
                            ? Text(*metadata, "format", "metadata")
                            : std::string_view();
    if (format == "ksym-dump") {
      Refuse("metadata.format",
             "the JSON has threads of ksym-profile dump and is no profile: "
             "dump them as pprof");
    }
    if (format != "ksym-profile") {
      Refuse("metadata", "the JSON is not of ksym-profile");
    }
    if (Number(*metadata, "format_version", "metadata") != 1) {
      Refuse("metadata.format_version",
             "is of a later version: read it with that one");
    }
    ReadKinds(*metadata);
    ReadFrames(Array(document_, "frames", "the document"));
    ReadStacks(Array(document_, "stacks", "the document"));
    const Accounting accounting = ReadAccounting(*metadata);
    // A document that somebody has cut tells of samples that are not in it.
    const bool is_whole = accounting.emitted == builder_.total();
    CaptureMetadata described = ReadMetadata(*metadata);
    described.kinds = std::move(kinds_);
    auto profile = std::move(builder_).Finish(std::move(described),
                                              is_whole ? &accounting : nullptr);
    if (profile) {
      profile->symbol_tables_evicted =
          Number(*metadata, "symbol_tables_evicted", "metadata");
      profile->thread_sums = ReadThreadSums(*metadata);
    }
    return profile;
  }

 private:
  static CaptureMetadata ReadMetadata(const Json& from) {
    const auto text = [&](const char* key) {
      return std::string(Text(from, key, "metadata"));
    };
    const auto number = [&](const char* key) {
      return Number(from, key, "metadata");
    };
    CaptureMetadata metadata;
    metadata.version = text("version");
    metadata.start_unix_ns = number("start_unix_ns");
    metadata.duration_ns = number("duration_ns");
    if (Member(from, "command") != nullptr) metadata.command = text("command");
    metadata.hostname = text("hostname");
    metadata.kernel_release = text("kernel_release");
    metadata.architecture = text("architecture");
    metadata.cpus = text("cpus");
    metadata.stack_store = text("stack_store");
    metadata.unwind = text("unwind");
    metadata.max_stack_depth = Number32(from, "max_stack_depth", "metadata");
    metadata.kernel_table = ReadKernelTable(from);
    metadata.unwind_tables = ReadUnwindTables(from);
    if (const Json* warnings = Member(from, "warnings");
        warnings != nullptr && warnings->is_array()) {
      for (const Json& warning : *warnings) {
        if (warning.is_string()) metadata.warnings.push_back(warning);
      }
    }
    return metadata;
  }

  static StateTimes ReadTimes(const Json& from, std::string_view where) {
    return {.running_ns = Number(from, "running_ns", where),
            .runnable_ns = Number(from, "runnable_ns", where),
            .blocked_ns = Number(from, "blocked_ns", where)};
  }

  ThreadSums ReadThreadSums(const Json& metadata) const {
    constexpr std::string_view kWhere = "metadata.thread_times";
    ThreadSums sums;
    const Json* from = Member(metadata, "thread_times");
    if (from == nullptr) return sums;
    if (!from->is_object()) Refuse(kWhere, "is no object");
    sums.count = Number32(*from, "threads", kWhere);
    sums.sum = ReadTimes(*from, kWhere);
    if (Member(document_, "threads") == nullptr) return sums;
    std::string room;
    for (const Json& thread : Array(document_, "threads", "the document")) {
      const std::string where = fmt::format("threads[{}]", sums.threads.size());
      if (!thread.is_object()) Refuse(where, "is no object");
      if (sums.threads.size() ==
          std::min<uint64_t>(sums.count, ThreadSums::kMaxThreads)) {
        Refuse(where, "is one too many");
      }
      sums.threads.push_back({.pid = Number32(thread, "pid", where),
                              .tid = Number32(thread, "tid", where),
                              .comm = std::string(ksym::BoundName(
                                  PrintableText(thread, "comm", where), room)),
                              .times = ReadTimes(thread, where)});
    }
    return sums;
  }

  // A document of one kind may tell its event and rate only.
  void ReadKinds(const Json& metadata) {
    if (Member(metadata, "kinds") == nullptr) {
      kinds_ = {EventKind(std::string(Text(metadata, "event", "metadata")),
                          Number(metadata, "frequency_hz", "metadata"),
                          Number(metadata, "count_period", "metadata"))};
      return;
    }
    for (const Json& from : Array(metadata, "kinds", "metadata")) {
      const std::string where =
          fmt::format("metadata.kinds[{}]", kinds_.size());
      if (!from.is_object()) Refuse(where, "is no object");
      if (kinds_.size() == kMaxSampleKinds) Refuse(where, "is one too many");
      SampleKind kind = {.name = PrintableText(from, "name", where),
                         .unit = std::string(Text(from, "unit", where)),
                         .event = std::string(Text(from, "event", where)),
                         .frequency_hz = Number(from, "frequency_hz", where),
                         .count_period = Number(from, "count_period", where),
                         .has_values = IsTrue(from, "has_values")};
      if (FindKind(kinds_, kind.name) != nullptr) {
        Refuse(where, "has the name of another one");
      }
      kinds_.push_back(std::move(kind));
    }
    if (kinds_.empty()) Refuse("metadata.kinds", "is empty");
  }

  // Where there are several, each stack says whose samples it has.
  SampleKindId KindOf(const Json& stack, std::string_view where) const {
    if (kinds_.size() == 1) return 0;
    const SampleKind* kind =
        FindKind(kinds_, PrintableText(stack, "sample_kind", where));
    if (kind == nullptr) Refuse(where, "has samples of an unknown kind");
    return static_cast<SampleKindId>(kind - kinds_.data());
  }

  static KernelTableStatistics ReadKernelTable(const Json& metadata) {
    constexpr std::string_view kWhere = "metadata.kernel_table";
    KernelTableStatistics table;
    const Json* from = Member(metadata, "kernel_table");
    if (from == nullptr || !from->is_object()) return table;
    table.snapshots = Number(*from, "snapshots", kWhere);
    table.changes = Number(*from, "changes", kWhere);
    table.symbols = Number(*from, "symbols", kWhere);
    table.bytes = Number(*from, "bytes", kWhere);
    table.reading_ns = Number(*from, "reading_ns", kWhere);
    return table;
  }

  static UnwindTableStatistics ReadUnwindTables(const Json& metadata) {
    constexpr std::string_view kWhere = "metadata.unwind_tables";
    UnwindTableStatistics tables;
    const Json* from = Member(metadata, "unwind_tables");
    if (from == nullptr || !from->is_object()) return tables;
    tables.processes = Number(*from, "processes", kWhere);
    tables.files = Number(*from, "files", kWhere);
    tables.bytes = Number(*from, "bytes", kWhere);
    tables.building_ns = Number(*from, "building_ns", kWhere);
    tables.median_delay_ns = Number(*from, "median_delay_ns", kWhere);
    tables.longest_delay_ns = Number(*from, "longest_delay_ns", kWhere);
    tables.stacks_copied = Number(*from, "stacks_copied", kWhere);
    return tables;
  }

  static ProcessLoss ReadProcessLoss(const Json& metadata) {
    constexpr std::string_view kWhere = "metadata.processes";
    ProcessLoss loss;
    const Json* from = Member(metadata, "processes");
    if (from == nullptr || !from->is_object()) return loss;
    loss.hints_dropped = Number(*from, "hints-dropped", kWhere);
    loss.reports_lost = Number(*from, "reports-lost", kWhere);
    loss.histories_dropped = Number(*from, "histories-dropped", kWhere);
    return loss;
  }

  static Accounting ReadAccounting(const Json& metadata) {
    constexpr std::string_view kWhere = "metadata.samples";
    Accounting accounting;
    const Json* samples = Member(metadata, "samples");
    if (samples == nullptr || !samples->is_object()) return accounting;
    accounting.taken = Number(*samples, "taken", kWhere);
    accounting.emitted = Number(*samples, "emitted", kWhere);
    ReadCauses<LossCause>(*samples, "lost", kWhere, accounting.lost_by_cause);
    ReadCauses<DamageCause>(*samples, "damaged", kWhere,
                            accounting.damaged_by_cause);
    ReadCauses<StackEnd>(*samples, "user_stack_ends", kWhere,
                         accounting.user_stack_ends);
    accounting.helped_by_frame_pointers =
        Number(*samples, "helped_by_frame_pointers", kWhere);
    accounting.time_enabled_ns = Number(*samples, "time_enabled_ns", kWhere);
    accounting.time_running_ns = Number(*samples, "time_running_ns", kWhere);
    accounting.processes = ReadProcessLoss(metadata);
    return accounting;
  }

  void ReadFrames(const Json& frames) {
    frames_.reserve(frames.size());
    for (const Json& frame : frames) {
      const std::string where = fmt::format("frames[{}]", frames_.size());
      if (!frame.is_object()) Refuse(where, "is no object");
      frames_.push_back(builder_.AddFrame(
          {.name = Text(frame, "name", where),
           .object = Text(frame, "module", where),
           .build_id = Text(frame, "build_id", where),
           .file = Text(frame, "file", where),
           .line = Number32(frame, "line", where),
           .function = Text(frame, "function", where),
           .first_line = Number32(frame, "first_line", where),
           .line_is_near = IsTrue(frame, "approximate"),
           .kind = FrameKindOf(frame, where),
           .reason = ReasonNamed(Text(frame, "reason", where)),
           .address = Hex(frame, "address", where),
           .file_offset = Hex(frame, "file_offset", where),
           .symbol_offset = Hex(frame, "symbol_offset", where)}));
    }
  }

  // Leaf first, of a list that is root first.
  std::vector<FrameId> ReadStack(const Json& stack, const char* key,
                                 std::string_view where) const {
    std::vector<FrameId> ids;
    for (const Json& index : Array(stack, key, where)) {
      if (!index.is_number_unsigned() ||
          index.get<uint64_t>() >= frames_.size()) {
        Refuse(fmt::format("{}.{}[{}]", where, key, ids.size()),
               "is no place in the list of frames");
      }
      ids.push_back(frames_[index.get<uint64_t>()]);
    }
    std::ranges::reverse(ids);
    return ids;
  }

  LabelSetId ReadLabels(const Json& stack, std::string_view where) {
    const Json* labels = Member(stack, "labels");
    if (labels == nullptr) return 0;
    if (!labels->is_object()) {
      Refuse(fmt::format("{}.labels", where), "is no object");
    }
    LabelSet set;
    for (const auto& [key, value] : labels->items()) {
      if (!value.is_string()) {
        Refuse(fmt::format("{}.labels", where), "has a value that is no text");
      }
      set.push_back({.key = key, .value = value.get<std::string>()});
    }
    return builder_.AddLabels(std::move(set));
  }

  void ReadStacks(const Json& stacks) {
    size_t number = 0;
    for (const Json& stack : stacks) {
      const std::string where = fmt::format("stacks[{}]", number++);
      if (!stack.is_object()) Refuse(where, "is no object");
      const std::vector<FrameId> user = ReadStack(stack, "user", where);
      const std::vector<FrameId> kernel = ReadStack(stack, "kernel", where);
      builder_.Add({.comm = Text(stack, "comm", where),
                    .pid = Number32(stack, "pid", where),
                    .tid = Number32(stack, "tid", where),
                    .cgroup = Text(stack, "cgroup", where),
                    .labels = ReadLabels(stack, where),
                    .user = user,
                    .kernel = kernel,
                    .user_state = UserState(stack, where),
                    .kernel_state =
                        StateNamed(Text(stack, "kernel_state", where), where),
                    .kind = KindOf(stack, where),
                    .parked = IsTrue(stack, "parked"),
                    .count = Number(stack, "count", where),
                    .value = Number(stack, "value", where)});
    }
  }

  const Json& document_;
  InputBuilder builder_;
  std::vector<SampleKind> kinds_;
  std::vector<FrameId> frames_;  // by their places in the document
};

// Lists and objects in each other, each of which takes memory of its own. Ours
// have five levels.
bool IsNestedDeeper(std::string_view text, size_t most) {
  size_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == '[' || c == '{')) {
      if (++depth > most) return true;
    } else if (!in_text && (c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

ksym::Result<Profile> ReadJson(std::string_view text) {
  constexpr size_t kMaxLevels = 32;
  if (IsNestedDeeper(text, kMaxLevels)) {
    return ksym::Fail(
        ksym::ErrorCode::kInvalid,
        fmt::format("the JSON has more than {} levels", kMaxLevels));
  }
  try {
    const Json document = Json::parse(text);
    if (!document.is_object()) Refuse("the document", "is no object");
    return Reader(document).Run();
  } catch (const Json::parse_error& error) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      fmt::format("no JSON at byte {}", error.byte));
  } catch (const Json::exception& error) {  // a number that no type has
    return ksym::Fail(
        ksym::ErrorCode::kInvalid,
        fmt::format("no JSON that can be read: {}", error.what()));
  } catch (const Wrong& wrong) {
    return ksym::Fail(ksym::ErrorCode::kInvalid, wrong.message);
  }
}

}  // namespace profd
