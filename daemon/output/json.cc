// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/cgroup_path.h"
#include "daemon/output/counted_texts.h"
#include "daemon/output/safe_name.h"
#include "daemon/output/text_pieces.h"
#include "daemon/profile/profile_terms.h"

namespace profd {
namespace {

void AppendNumber(std::string_view key, uint64_t value, std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":{}", key, value);
}

void AppendHex(std::string_view key, uint64_t value, std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":\"{:#x}\"", key, value);
}

// With its key; the comma is in front.
void AppendText(std::string_view key, std::string_view value,
                std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":\"", key);
  AppendJsonText(value, out);
  out += '"';
}

template <typename Cause, size_t kCauses>
void AppendCauses(std::string_view key,
                  const std::array<uint64_t, kCauses>& counts,
                  std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":{{", key);
  for (size_t i = 0; i < kCauses; ++i) {
    fmt::format_to(std::back_inserter(out), "{}\"{}\":{}", i == 0 ? "" : ",",
                   Name(static_cast<Cause>(i)), counts[i]);
  }
  out += '}';
}

void AppendKernelTable(const KernelTableStatistics& table, std::string& out) {
  if (table.snapshots == 0) return;
  fmt::format_to(std::back_inserter(out),
                 ",\"kernel_table\":{{\"snapshots\":{}", table.snapshots);
  AppendNumber("changes", table.changes, out);
  AppendNumber("symbols", table.symbols, out);
  AppendNumber("bytes", table.bytes, out);
  AppendNumber("reading_ns", table.reading_ns, out);
  out += '}';
}

void AppendUnwindTables(const UnwindTableStatistics& tables, std::string& out) {
  if (tables == UnwindTableStatistics{}) return;
  fmt::format_to(std::back_inserter(out),
                 ",\"unwind_tables\":{{\"processes\":{}", tables.processes);
  AppendNumber("files", tables.files, out);
  AppendNumber("bytes", tables.bytes, out);
  AppendNumber("building_ns", tables.building_ns, out);
  AppendNumber("median_delay_ns", tables.median_delay_ns, out);
  AppendNumber("longest_delay_ns", tables.longest_delay_ns, out);
  AppendNumber("stacks_copied", tables.stacks_copied, out);
  out += '}';
}

// Where an event and its rate do not tell it.
void AppendKinds(const CaptureMetadata& metadata, std::string& out) {
  if (IsOneEventKind(metadata.kinds)) return;
  std::string_view before = ",\"kinds\":[";
  for (const SampleKind& kind : metadata.kinds) {
    out += std::exchange(before, ",");
    out += "{\"name\":\"";
    AppendJsonText(kind.name, out);
    out += '"';
    AppendText("unit", kind.unit, out);
    AppendText("event", kind.event, out);
    if (kind.has_values) {
      out += ",\"has_values\":true";
    } else if (kind.frequency_hz != 0) {
      AppendNumber("frequency_hz", kind.frequency_hz, out);
    } else {
      AppendNumber("count_period", kind.count_period, out);
    }
    out += '}';
  }
  out += ']';
}

void AppendTimes(const StateTimes& times, std::string& out) {
  AppendNumber("running_ns", times.running_ns, out);
  AppendNumber("runnable_ns", times.runnable_ns, out);
  AppendNumber("blocked_ns", times.blocked_ns, out);
}

void AppendThreadSums(const ThreadSums& sums, std::string& out) {
  if (sums.count == 0) return;
  fmt::format_to(std::back_inserter(out), ",\"thread_times\":{{\"threads\":{}",
                 sums.count);
  AppendNumber("not_listed", sums.count - sums.threads.size(), out);
  AppendTimes(sums.sum, out);
  out += '}';
}

// The member "threads" with a comma in front, where there are any.
void WriteThreads(const ThreadSums& sums, OutputBuffer& out) {
  if (sums.threads.empty()) return;
  std::string_view before = ",\n\"threads\":[\n";
  for (const ThreadSums::Thread& thread : sums.Sorted()) {
    std::string& text = out.text();
    text += std::exchange(before, ",\n");
    fmt::format_to(std::back_inserter(text), "{{\"pid\":{}", thread.pid);
    AppendNumber("tid", thread.tid, text);
    AppendText("comm", thread.comm, text);
    AppendTimes(thread.times, text);
    text += '}';
    if (!out.PassOn()) return;
  }
  out.text() += "\n]";
}

void AppendMetadata(const Profile& profile, std::string& out) {
  const CaptureMetadata& metadata = profile.metadata;
  out += "\"metadata\":{\"format\":\"ksym-profile\",\"format_version\":1";
  AppendText("version", metadata.version, out);
  AppendText("event", metadata.kinds.front().event, out);
  if (metadata.kinds.front().frequency_hz != 0) {
    AppendNumber("frequency_hz", metadata.kinds.front().frequency_hz, out);
  } else {
    AppendNumber("count_period", metadata.kinds.front().count_period, out);
  }
  AppendKinds(metadata, out);
  AppendNumber("start_unix_ns", metadata.start_unix_ns, out);
  AppendNumber("duration_ns", metadata.duration_ns, out);
  if (!metadata.command.empty()) AppendText("command", metadata.command, out);
  AppendText("hostname", metadata.hostname, out);
  AppendText("kernel_release", metadata.kernel_release, out);
  AppendText("architecture", metadata.architecture, out);
  AppendText("cpus", metadata.cpus, out);
  AppendText("stack_store", metadata.stack_store, out);
  AppendText("unwind", metadata.unwind, out);
  AppendNumber("max_stack_depth", metadata.max_stack_depth, out);
  AppendNumber("symbol_tables_evicted", profile.symbol_tables_evicted, out);
  AppendKernelTable(metadata.kernel_table, out);
  AppendUnwindTables(metadata.unwind_tables, out);
  AppendThreadSums(profile.thread_sums, out);
  out += ",\"warnings\":[";
  for (const std::string& warning : metadata.warnings) {
    out += &warning == metadata.warnings.data() ? "\"" : ",\"";
    AppendJsonText(warning, out);
    out += '"';
  }
  const Accounting& accounting = profile.accounting;
  fmt::format_to(std::back_inserter(out), "],\"samples\":{{\"taken\":{}",
                 accounting.taken);
  AppendNumber("emitted", accounting.emitted, out);
  AppendCauses<LossCause>("lost", accounting.lost_by_cause, out);
  AppendCauses<DamageCause>("damaged", accounting.damaged_by_cause, out);
  AppendCauses<StackEnd>("user_stack_ends", accounting.user_stack_ends, out);
  AppendNumber("helped_by_frame_pointers", accounting.helped_by_frame_pointers,
               out);
  AppendNumber("time_enabled_ns", accounting.time_enabled_ns, out);
  AppendNumber("time_running_ns", accounting.time_running_ns, out);
  const ProcessLoss& processes = accounting.processes;
  fmt::format_to(std::back_inserter(out),
                 "}},\"processes\":{{\"hints-dropped\":{}",
                 processes.hints_dropped);
  AppendNumber("reports-lost", processes.reports_lost, out);
  AppendNumber("histories-dropped", processes.histories_dropped, out);
  out += "}}";
}

// The table of the frames as they are printed: sorted, each one once.
struct FrameTable {
  std::vector<std::string> objects;
  std::vector<uint32_t> index_of;  // by FrameId
};

FrameTable MakeFrameTable(const Profile& profile,
                          const OutputOptions& options) {
  std::vector<std::string> objects;
  objects.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    objects.push_back(FrameJson(profile, frame, options));
  }
  std::vector<FrameId> order(objects.size());
  std::iota(order.begin(), order.end(), FrameId{0});
  std::ranges::sort(
      order, {}, [&](FrameId id) -> const std::string& { return objects[id]; });
  FrameTable table;
  table.index_of.resize(objects.size());
  for (const FrameId id : order) {
    if (table.objects.empty() || table.objects.back() != objects[id]) {
      table.objects.push_back(std::move(objects[id]));
    }
    table.index_of[id] = static_cast<uint32_t>(table.objects.size() - 1);
  }
  return table;
}

// The stacks' lines, but for their counts, as keys of three kinds of pieces:
// everything up to the first frame, a frame's index with the comma or bracket
// that follows it, and the bracket of an empty list. None begins with another.
class StackLines {
 public:
  StackLines(const Profile& profile, const OutputOptions& options,
             const FrameTable& table)
      : profile_(profile),
        options_(options),
        table_(table),
        has_values_(std::ranges::any_of(profile.metadata.kinds,
                                        &SampleKind::has_values)) {
    MakePieces();
    for (size_t i = 0; i < profile_.samples.size(); ++i) {
      AddLine(profile_.samples[i], head_of_sample_[i]);
    }
    lines_.SortAndMerge();
    values_.SortAndMerge();
  }

  void Write(OutputBuffer& out) const {
    std::string_view before = "\n";
    for (size_t i = 0; i < lines_.entries().size(); ++i) {
      const CountedTexts::Entry& entry = lines_.entries()[i];
      std::string& text = out.text();
      text += std::exchange(before, ",\n");
      KeyReader key(pieces_.rank_bits(), lines_.Text(entry));
      text += pieces_.Text(key.Next());
      AppendList(key, text);
      text += ",\"kernel\":[";
      AppendList(key, text);
      AppendNumber("count", entry.count, text);
      if (has_values_ && values_.entries()[i].count != 0) {
        AppendNumber("value", values_.entries()[i].count, text);
      }
      text += '}';
      if (!out.PassOn()) return;
    }
  }

 private:
  // Numbers in pieces_, and ranks when these are there.
  struct Index {
    uint32_t inner = 0;  // "12,"
    uint32_t last = 0;   // "12]"
  };

  void MakePieces() {
    indices_.reserve(table_.objects.size());
    for (size_t i = 0; i < table_.objects.size(); ++i) {
      std::string text = fmt::format("{},", i);
      const uint32_t inner = pieces_.Add(text);
      text.back() = ']';
      indices_.push_back({.inner = inner, .last = pieces_.Add(text)});
    }
    SampleHeads heads;
    head_of_sample_.reserve(profile_.samples.size());
    for (const ProfileSample& sample : profile_.samples) {
      head_of_sample_.push_back(
          heads.Find(sample, [&] { return pieces_.Add(HeadText(sample)); }));
    }
    end_ = pieces_.Add("]");
    pieces_.Rank();
    for (Index& index : indices_) {
      index = {.inner = pieces_.RankOf(index.inner),
               .last = pieces_.RankOf(index.last)};
    }
    for (uint32_t& head : head_of_sample_) head = pieces_.RankOf(head);
    end_ = pieces_.RankOf(end_);
  }

  std::string HeadText(const ProfileSample& sample) const {
    std::string text = "{\"comm\":\"";
    AppendJsonText(profile_.String(sample.comm), text);
    text += '"';
    AppendNumber("pid", sample.pid, text);
    if (options_.by == OutputOptions::By::kTid) {
      AppendNumber("tid", sample.tid, text);
    }
    if (sample.pid != 0 && sample.pid == options_.labels.self_pid) {
      text += ",\"self\":true";
    }
    for (const auto& [key, value] :
         CgroupLabels(profile_.String(sample.cgroup), options_.labels)) {
      AppendText(key, value, text);
    }
    AppendLabels(sample, text);
    AppendText("user_state", Name(sample.user_state), text);
    if (const auto cause = CauseOf(sample.user_state)) {
      AppendText("user_end", Name(*cause), text);
    }
    AppendText("kernel_state", Name(sample.kernel_state), text);
    const std::vector<SampleKind>& kinds = profile_.metadata.kinds;
    if (kinds.size() > 1) {
      AppendText("sample_kind", kinds[sample.kind].name, text);
    }
    if (sample.parked) text += ",\"parked\":true";
    text += ",\"user\":[";
    return text;
  }

  void AppendLabels(const ProfileSample& sample, std::string& text) const {
    if (sample.labels == 0) return;
    std::string_view before = ",\"labels\":{\"";
    for (const auto& [key, value] : profile_.LabelsOf(sample)) {
      text += std::exchange(before, ",\"");
      AppendJsonText(profile_.String(key), text);
      text += "\":\"";
      AppendJsonText(profile_.String(value), text);
      text += '"';
    }
    text += '}';
  }

  void AddLine(const ProfileSample& sample, uint32_t head) {
    KeyWriter key(pieces_.rank_bits(), lines_.buffer());
    key.Add(head);
    for (const CallStackId stack : {sample.user, sample.kernel}) {
      const auto leaf_first = profile_.Stack(stack);
      if (leaf_first.empty()) key.Add(end_);
      for (size_t i = leaf_first.size(); i-- > 0;) {
        const Index& index = indices_[table_.index_of[leaf_first[i]]];
        key.Add(i == 0 ? index.last : index.inner);
      }
    }
    key.Finish();
    if (has_values_) {
      // The same keys, so that both are in the same order when they are sorted.
      values_.buffer() += lines_.buffer().substr(lines_.committed());
      values_.Commit(sample.value);
    }
    lines_.Commit(sample.count);
  }

  // The pieces up to the bracket.
  void AppendList(KeyReader& key, std::string& out) const {
    do {
      out += pieces_.Text(key.Next());
    } while (out.back() != ']');
  }

  const Profile& profile_;
  const OutputOptions& options_;
  const FrameTable& table_;
  TextPieces pieces_;
  std::vector<Index> indices_;            // by place in table_
  std::vector<uint32_t> head_of_sample_;  // by index of the sample
  uint32_t end_ = 0;                      // of an empty list
  CountedTexts lines_;
  bool has_values_;
  CountedTexts values_;  // where there are any: the same keys
};

}  // namespace

std::string FrameJson(const Profile& profile, const Frame& frame,
                      const OutputOptions& options) {
  std::string out = "{\"name\":\"";
  const std::string_view name = profile.String(frame.name);
  AppendJsonText(name.empty() ? "[unknown]" : name, out);
  out += '"';
  AppendText("kind", frame.kind->name, out);
  const std::string_view module = profile.String(frame.object);
  if (!module.empty()) AppendText("module", module, out);
  const std::string_view build_id = profile.String(frame.build_id);
  if (!build_id.empty()) AppendText("build_id", build_id, out);
  if (frame.kind->is_in_file && !module.empty()) {
    AppendHex("file_offset", frame.file_offset, out);
  }
  if (frame.function != 0) {
    AppendText("function", profile.String(frame.function), out);
  } else if (frame.reason != ksym::Unresolved::kNone) {
    AppendText("reason", ksym::UnresolvedName(frame.reason), out);
  } else if (frame.kind->has_offsets) {
    AppendHex("symbol_offset", frame.symbol_offset, out);
  }
  if (frame.kind->is_inlined) out += ",\"inlined\":true";
  if (frame.line_is_near) out += ",\"approximate\":true";
  if (frame.file != 0) {
    AppendText("file", profile.String(frame.file), out);
    AppendNumber("line", frame.line, out);
    if (frame.first_line != 0) {
      AppendNumber("first_line", frame.first_line, out);
    }
  }
  if (options.addresses) AppendHex("address", frame.address, out);
  out += '}';
  return out;
}

void WriteJson(const Profile& profile, const OutputOptions& options,
               OutputBuffer& out) {
  const FrameTable table = MakeFrameTable(profile, options);
  const StackLines stacks(profile, options, table);
  std::string& text = out.text();
  text += "{";
  AppendMetadata(profile, text);
  text += ",\n\"frames\":[";
  for (const std::string& object : table.objects) {
    text += &object == table.objects.data() ? "\n" : ",\n";
    text += object;
    if (!out.PassOn()) return;
  }
  text += "\n],\n\"stacks\":[";
  stacks.Write(out);
  text += "\n]";
  WriteThreads(profile.thread_sums, out);
  text += "}\n";
}

}  // namespace profd
