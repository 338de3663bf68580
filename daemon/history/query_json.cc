// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/query_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "daemon/history/json_pieces.h"

namespace profd::history {
namespace {

constexpr uint64_t kNsOfMillisecond = 1'000'000;

// Says which files lack something, and what is not known.
void AppendReading(const RangeCoverage& coverage, const FilesRead& read,
                   std::string& out) {
  fmt::format_to(std::back_inserter(out),
                 ",\"thinned_files\":{},\"folded_stacks\":{}",
                 read.thinned_files, read.folded_stacks);
  std::vector<std::string> warnings = TextsOf(coverage);
  std::ranges::copy(read.warnings, std::back_inserter(warnings));
  out += ",\"warnings\":";
  AppendList(warnings, [&](const auto& text) { AppendText(text, out); }, out);
}

void AppendCoverage(const RangeCoverage& coverage, std::string& out) {
  fmt::format_to(std::back_inserter(out),
                 "\"known\":{},\"parts\":{},\"restarts\":{},\"set_back\":{},"
                 "\"holes\":{},\"hole_seconds\":{}",
                 SecondsText(coverage.known_ns), coverage.parts,
                 coverage.restarts, coverage.set_back, coverage.holes,
                 SecondsText(coverage.hole_ns));
}

template <typename Member>
void AppendSteps(std::string_view name, const Timeline& line,
                 const Member& member, std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\n\"{}\":", name);
  AppendList(
      line.steps,
      [&](const Timeline::Step& step) {
        fmt::format_to(std::back_inserter(out), "{}", member(step));
      },
      out);
}

// A step's marks: 1 a restart, 2 a clock that went back, 4
// another rate.
int MarksOf(const Timeline::Step& step) {
  return (step.has_restart ? 1 : 0) | (step.has_set_back ? 2 : 0) |
         (step.has_new_rate ? 4 : 0);
}

}  // namespace

std::string RenderListingJson(const ListingAnswer& answer) {
  std::string out = "{\"files\":";
  AppendList(
      answer.files,
      [&](const FileSummary& file) {
        out += "\n{\"name\":";
        AppendText(TextOf(file.name), out);
        fmt::format_to(std::back_inserter(out),
                       ",\"from\":{},\"until\":{},\"bytes\":{},"
                       "\"torn_bytes\":{},\"samples\":{},\"lost\":{},"
                       "\"thinned\":{},\"folded_stacks\":{},",
                       SecondsText(file.from_unix_ns),
                       SecondsText(file.until_unix_ns), file.bytes,
                       file.torn_bytes, file.samples, file.lost,
                       file.is_thinned, file.folded_stacks);
        AppendCoverage(file.coverage, out);
        out += '}';
      },
      out);
  AppendReading({}, answer.read, out);
  return out += "}\n";
}

std::string RenderFunctionsJson(const FunctionAnswer& answer, size_t top) {
  const FunctionTable& table = answer.table;
  const size_t shown =
      top == 0 ? table.lines.size() : std::min(top, table.lines.size());
  std::string out = "{\"kind\":";
  AppendText(table.kind, out);
  out += ",\"unit\":";
  AppendText(table.unit, out);
  fmt::format_to(std::back_inserter(out), ",\"sum\":{},\"functions\":{},",
                 table.sum, table.lines.size());
  AppendCoverage(table.coverage, out);
  out += ",\n\"rows\":";
  AppendList(
      std::span(table.lines).first(shown),
      [&](const FunctionTable::Line& line) {
        out += "\n{\"name\":";
        AppendText(table.strings.Get(line.name), out);
        out += ",\"module\":";
        AppendText(table.strings.Get(line.object), out);
        fmt::format_to(std::back_inserter(out),
                       ",\"kind\":\"{}\",\"self\":{},\"total\":{}}}",
                       line.kind->name, line.self, line.total);
      },
      out);
  AppendReading(table.coverage, answer.read, out);
  return out += "}\n";
}

namespace {

void AppendNumbers(const std::vector<uint64_t>& values, std::string& out) {
  fmt::format_to(std::back_inserter(out), "[{}]", fmt::join(values, ","));
}

void AppendLanes(const Timeline& line, std::string& out) {
  out += ",\n\"lanes\":";
  AppendList(
      line.lanes,
      [&](const Timeline::Lane& lane) {
        out += "\n{\"kind\":";
        AppendText(lane.kind, out);
        out += ",\"unit\":";
        AppendText(lane.unit, out);
        out += ",\"known_ms\":";
        AppendList(
            lane.known_ns,
            [&](uint64_t ns) {
              fmt::format_to(std::back_inserter(out), "{}",
                             ns / kNsOfMillisecond);
            },
            out);
        out += '}';
      },
      out);
}

}  // namespace

std::string RenderTimelineJson(const TimelineAnswer& answer) {
  const Timeline& line = answer.line;
  std::string out = fmt::format(
      "{{\"from\":{},\"step\":{},\"kind\":", SecondsText(line.from_unix_ns),
      SecondsText(line.step_ns));
  AppendText(line.kind, out);
  out += ",\"unit\":";
  AppendText(line.unit, out);
  fmt::format_to(std::back_inserter(out), ",\"names\":{},\"coarse\":{},",
                 line.names, line.is_coarse);
  AppendCoverage(line.coverage, out);
  AppendSteps(
      "known_ms", line,
      [](const auto& step) { return step.known_ns / kNsOfMillisecond; }, out);
  AppendSteps(
      "samples", line, [](const auto& step) { return step.samples; }, out);
  AppendSteps("lost", line, [](const auto& step) { return step.lost; }, out);
  AppendSteps("marks", line, MarksOf, out);
  if (line.lanes.size() > 1) AppendLanes(line, out);
  out += ",\n\"rows\":";
  AppendList(
      line.rows,
      [&](const Timeline::Row& row) {
        out += "\n{\"name\":";
        AppendText(row.name, out);
        if (!row.comm.empty()) {
          out += ",\"comm\":";
          AppendText(row.comm, out);
        }
        fmt::format_to(std::back_inserter(out),
                       ",\"rest\":{},\"sum\":{},\"values\":", row.is_rest,
                       row.sum);
        AppendNumbers(row.values, out);
        if (!row.others.empty()) {
          out += ",\"others\":";
          AppendList(
              row.others,
              [&](const auto& values) { AppendNumbers(values, out); }, out);
        }
        out += '}';
      },
      out);
  AppendReading(line.coverage, answer.read, out);
  return out += "}\n";
}

}  // namespace profd::history
