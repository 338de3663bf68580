#include "daemon/output/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/output/counted_texts.h"
#include "daemon/output/safe_name.h"

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

std::string_view StateName(StackState state) {
  switch (state) {
    case StackState::kNone:
      return "none";
    case StackState::kWhole:
      return "whole";
    case StackState::kTruncated:
      return "truncated";
    case StackState::kBroken:
      return "broken";
    case StackState::kFaulted:
      return "faulted";
    case StackState::kCollided:
      return "collided";
  }
  return "none";
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

void AppendMetadata(const Profile& profile, std::string& out) {
  const CaptureMetadata& metadata = profile.metadata;
  out += "\"metadata\":{\"format\":\"ksym-profile\",\"format_version\":1";
  AppendText("version", metadata.version, out);
  AppendText("event", metadata.event, out);
  if (metadata.frequency_hz != 0) {
    AppendNumber("frequency_hz", metadata.frequency_hz, out);
  } else {
    AppendNumber("count_period", metadata.count_period, out);
  }
  AppendNumber("start_unix_ns", metadata.start_unix_ns, out);
  AppendNumber("duration_ns", metadata.duration_ns, out);
  AppendText("hostname", metadata.hostname, out);
  AppendText("kernel_release", metadata.kernel_release, out);
  AppendText("architecture", metadata.architecture, out);
  AppendText("cpus", metadata.cpus, out);
  AppendText("stack_store", metadata.stack_store, out);
  AppendText("unwind", metadata.unwind, out);
  AppendNumber("max_stack_depth", metadata.max_stack_depth, out);
  AppendNumber("symbol_tables_evicted", profile.symbol_tables_evicted, out);
  AppendKernelTable(metadata.kernel_table, out);
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

std::string FrameObject(const Profile& profile, const Frame& frame,
                        const OutputOptions& options) {
  std::string out = "{\"name\":\"";
  const std::string_view name = profile.String(frame.name);
  AppendJsonText(name.empty() ? "[unknown]" : name, out);
  out += '"';
  const bool is_user = frame.kind == FrameKind::kUser;
  AppendText("kind", is_user ? "user" : "kernel", out);
  const std::string_view module = profile.String(frame.module);
  if (!module.empty()) AppendText("module", module, out);
  const std::string_view build_id = profile.String(frame.build_id);
  if (!build_id.empty()) AppendText("build_id", build_id, out);
  if (is_user && !module.empty()) {
    AppendHex("file_offset", frame.file_offset, out);
  }
  if (frame.reason == ksym::Unresolved::kNone) {
    AppendHex("symbol_offset", frame.symbol_offset, out);
  } else {
    AppendText("reason", ksym::UnresolvedName(frame.reason), out);
  }
  if (frame.inlined) out += ",\"inlined\":true";
  if (frame.file != 0) {
    AppendText("file", profile.String(frame.file), out);
    AppendNumber("line", frame.line, out);
  }
  if (options.addresses) AppendHex("address", frame.address, out);
  out += '}';
  return out;
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
    objects.push_back(FrameObject(profile, frame, options));
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

void AppendStack(std::string_view key, std::span<const FrameId> leaf_first,
                 const FrameTable& table, std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":[", key);
  for (size_t i = leaf_first.size(); i-- > 0;) {
    const fmt::format_int index(table.index_of[leaf_first[i]]);
    out.append(index.data(), index.size());
    if (i != 0) out += ',';
  }
  out += ']';
}

}  // namespace

std::string RenderJson(const Profile& profile, const OutputOptions& options) {
  const FrameTable table = MakeFrameTable(profile, options);
  CountedTexts stacks;
  std::string& buffer = stacks.buffer();
  for (const ProfileSample& sample : profile.samples) {
    buffer += "{\"comm\":\"";
    AppendJsonText(profile.String(sample.comm), buffer);
    buffer += '"';
    AppendNumber("pid", sample.pid, buffer);
    if (options.by == OutputOptions::By::kTid) {
      AppendNumber("tid", sample.tid, buffer);
    }
    AppendText("user_state", StateName(sample.user_state), buffer);
    AppendText("kernel_state", StateName(sample.kernel_state), buffer);
    AppendStack("user", profile.Stack(sample.user), table, buffer);
    AppendStack("kernel", profile.Stack(sample.kernel), table, buffer);
    stacks.Commit(sample.count);
  }
  stacks.SortAndMerge();

  std::string out = "{";
  AppendMetadata(profile, out);
  out += ",\n\"frames\":[";
  for (const std::string& object : table.objects) {
    out += &object == table.objects.data() ? "\n" : ",\n";
    out += object;
  }
  out += "\n],\n\"stacks\":[";
  out.reserve(out.size() + stacks.text_bytes() + stacks.entries().size() * 24);
  for (const CountedTexts::Entry& entry : stacks.entries()) {
    out += &entry == stacks.entries().data() ? "\n" : ",\n";
    out += stacks.Text(entry);
    fmt::format_to(std::back_inserter(out), ",\"count\":{}}}", entry.count);
  }
  out += "\n]}\n";
  return out;
}

}  // namespace profd
