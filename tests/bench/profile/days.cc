// SPDX-License-Identifier: Apache-2.0
// bench_days FROM TO HOURS: fills the directory TO with a history of that many
// hours that ends now: the segments of FROM, again and again, each time with
// other processes; then puts those of each hour together, and thins out those
// that are older than a day, as the service does. Prints as JSON the files and
// their bytes, all and of those that are older than a day, the hours of these,
// and what of the time that FROM is of was repeated.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/history/history_directory.h"
#include "daemon/history/history_writer.h"
#include "daemon/history/layout.h"
#include "daemon/history/replacement.h"
#include "daemon/history/summary.h"

namespace {

using namespace profd::history;
using profd::kNsPerSecond;

constexpr uint64_t kHourNs = 3600 * kNsPerSecond;
constexpr uint64_t kDayNs = 24 * kHourNs;
constexpr uint32_t kPidsOfOneTime = 1'000'000;

// All of a history, the oldest first.
struct Recording {
  std::vector<Tables> files;
  uint64_t begin_ns = UINT64_MAX;
  uint64_t end_ns = 0;
};

ksym::Result<Recording> Read(const std::string& directory) {
  Recording recording;
  const auto names = ListFiles(directory);
  if (!names) return ksym::Fail(names.error());
  for (const FileName& name : *names) {
    if (!name.is_segment) continue;
    auto tables = ReadWhole(directory, name);
    if (!tables) return ksym::Fail(tables.error());
    for (const Part& part : tables->parts) {
      recording.begin_ns = std::min(recording.begin_ns, part.start_unix_ns);
      recording.end_ns =
          std::max(recording.end_ns, part.start_unix_ns + part.duration_ns);
    }
    recording.files.push_back(std::move(*tables));
  }
  if (recording.end_ns <= recording.begin_ns) {
    return ksym::Fail(ksym::ErrorCode::kNotFound, directory + ": no samples");
  }
  return recording;
}

// The same, so much later; a process of it is another one each time.
Tables Again(const Tables& tables, uint64_t later_ns, uint32_t time) {
  Tables again = tables;
  for (Part& part : again.parts) part.start_unix_ns += later_ns;
  for (Series& series : again.series) {
    for (uint32_t* id : {&series.pid, &series.tid}) {
      if (*id != 0) *id = *id % kPidsOfOneTime + time % 4 * kPidsOfOneTime;
    }
  }
  return again;
}

ksym::Status Write(const std::string& directory, Tables tables,
                   uint64_t sequence) {
  const Sequences sequences = {.first = sequence, .last = sequence};
  const FileName name = SegmentNameOf(tables, sequences);
  const auto bytes = EncodeSummarized(tables, sequences);
  if (!bytes) return ksym::Fail(bytes.error());
  std::ofstream file(directory + '/' + TextOf(name), std::ios::binary);
  file << *bytes;
  if (file.flush()) return {};
  return ksym::Fail(ksym::ErrorCode::kIo, directory + ": not written");
}

ksym::Status Fill(const Recording& recording, const std::string& directory,
                  uint64_t from_ns, uint64_t now_ns) {
  const uint64_t span_ns = recording.end_ns - recording.begin_ns;
  uint64_t sequence = 0;
  uint32_t time = 0;
  // The last time ends now.
  uint64_t start_ns = now_ns - (now_ns - from_ns) / span_ns * span_ns;
  for (; start_ns + span_ns <= now_ns; start_ns += span_ns, ++time) {
    for (const Tables& tables : recording.files) {
      auto done =
          Write(directory, Again(tables, start_ns - recording.begin_ns, time),
                ++sequence);
      if (!done) return done;
    }
  }
  return {};
}

ksym::Status Keep(const std::string& directory, uint64_t now_ns) {
  const auto go_on = [] { return false; };
  HistoryWriter::Limits limits = {.max_bytes = UINT64_MAX};
  auto writer = HistoryWriter::Open(directory, limits,
                                    {.boot = {}, .name = "bench_days"}, now_ns);
  if (!writer) return ksym::Fail(writer.error());
  for (uint64_t before = UINT64_MAX; before != writer->counts().compactions;) {
    before = writer->counts().compactions;
    if (auto done = writer->Compact(now_ns, go_on); !done) return done;
  }
  // One file in two minutes: the clock goes on, and the age with it.
  constexpr std::chrono::seconds kStep(130);
  for (uint64_t before = UINT64_MAX; before != writer->counts().thinnings;) {
    before = writer->counts().thinnings;
    writer->SetLimits(limits);
    if (auto done = writer->Thin(now_ns, go_on); !done) return done;
    now_ns += static_cast<uint64_t>(kStep.count()) * kNsPerSecond;
    limits.thin_after += kStep;
  }
  return {};
}

ksym::Status Print(const Recording& recording, const std::string& directory,
                   uint64_t now_ns) {
  const auto names = ListFiles(directory);
  if (!names) return ksym::Fail(names.error());
  uint64_t files = 0, bytes = 0, old_bytes = 0, old_s = 0;
  for (const FileName& name : *names) {
    const uint64_t size = SizeOfFile(directory + '/' + TextOf(name));
    ++files;
    bytes += size;
    if (name.end_s + kDayNs / kNsPerSecond > now_ns / kNsPerSecond) continue;
    old_bytes += size;
    old_s += name.end_s - name.begin_s;
  }
  fmt::print(
      "{{\"files\":{},\"bytes\":{},\"old_bytes\":{},\"old_hours\":{:.2f},"
      "\"recorded_seconds\":{}}}\n",
      files, bytes, old_bytes, static_cast<double>(old_s) / 3600,
      (recording.end_ns - recording.begin_ns) / kNsPerSecond);
  return {};
}

ksym::Status Main(const std::string& from, const std::string& to,
                  uint64_t hours) {
  auto recording = Read(from);
  if (!recording) return ksym::Fail(recording.error());
  const uint64_t now_ns = profd::NowNs(CLOCK_REALTIME);
  auto done = Fill(*recording, to, now_ns - hours * kHourNs, now_ns);
  if (done) done = Keep(to, now_ns);
  if (done) done = Print(*recording, to, now_ns);
  return done;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string_view text = arguments[3];
  uint64_t hours = 0;
  std::from_chars(text.data(), text.data() + text.size(), hours);
  std::error_code error;
  std::filesystem::create_directories(arguments[2], error);
  const ksym::Status done = Main(arguments[1], arguments[2], hours);
  if (done) return 0;
  fmt::print(stderr, "bench_days: {}\n", done.error().message());
  return 1;
}
