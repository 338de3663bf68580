// SPDX-License-Identifier: Apache-2.0
// bench_thin DIRECTORY: thins out each segment of a history that was not, as
// the service does when it is a day old, but leaves the directory as it is.
// Prints as JSON what that saves and takes, of all of them, and whether all
// sums are what they were: of each series and second, and of each stack that is
// left, by itself and with all that begin with it, of each kind of samples.

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/history/history_directory.h"
#include "daemon/history/rare_callees.h"
#include "daemon/history/replacement.h"
#include "daemon/history/thinning.h"
#include "ksym/base/keyed_hash.h"

namespace {

using namespace profd::history;
using ksym::HashWords;

struct Sum {
  uint64_t count = 0;
  uint64_t value = 0;

  void Add(const Row& row) {
    count += row.count;
    value += row.value;
  }
  void Add(const Sum& sum) {
    count += sum.count;
    value += sum.value;
  }
  bool operator==(const Sum&) const = default;
};

uint64_t HashOfText(const Tables& tables, uint32_t text) {
  return ksym::HashText(tables.strings.Get(text));
}

bool IsMark(const Tables& tables, const Node& node) {
  const Function& function = tables.functions[node.function];
  return tables.strings.Get(function.name) == kRareCallees &&
         tables.strings.Get(function.reason) ==
             ksym::UnresolvedName(kRareReason);
}

// What a stack is, whatever place it has.
std::vector<uint64_t> HashesOfNodes(const Tables& tables) {
  std::vector<uint64_t> hashes = {0};
  for (size_t i = 1; i < tables.nodes.size(); ++i) {
    const Node& node = tables.nodes[i];
    const Function& function = tables.functions[node.function];
    uint64_t hash = hashes[node.parent];
    for (const uint32_t text :
         {function.name, function.object, function.build_id, function.function,
          function.file, function.kind, function.reason}) {
      hash = HashWords(hash, HashOfText(tables, text));
    }
    hash = HashWords(hash, function.first_line);
    hashes.push_back(HashWords(hash, function.flags));
  }
  return hashes;
}

// The sums of one kind and side, by stack.
using SumsOfStack = std::unordered_map<uint64_t, std::pair<Sum, Sum>>;

SumsOfStack SumsOf(const Tables& tables, uint32_t kind, uint32_t Row::* side) {
  std::vector<Sum> self(tables.nodes.size());
  for (const Row& row : tables.rows) {
    if (tables.series[row.series].kind == kind) self[row.*side].Add(row);
  }
  std::vector<Sum> total = self;
  for (size_t i = total.size(); --i > 0;) {
    total[tables.nodes[i].parent].Add(total[i]);
  }
  const std::vector<uint64_t> hashes = HashesOfNodes(tables);
  SumsOfStack sums;
  for (size_t i = 1; i < total.size(); ++i) {
    if (total[i] == Sum() || IsMark(tables, tables.nodes[i])) continue;
    auto& [all, own] = sums[hashes[i]];
    all.Add(total[i]);
    own.Add(self[i]);
  }
  return sums;
}

auto SumsOfSeries(const Tables& tables) {
  std::map<std::tuple<uint64_t, uint64_t, uint32_t, uint32_t>, Sum> sums;
  for (const Row& row : tables.rows) {
    const Series& series = tables.series[row.series];
    sums[{HashWords(HashOfText(tables, series.comm),
                    HashOfText(tables, series.cgroup)),
          HashWords(HashWords(series.pid, series.tid),
                    HashWords(series.user_state * 256 + series.kernel_state,
                              series.parked)),
          series.kind, row.part}]
        .Add(row);
  }
  return sums;
}

bool HaveSameSums(const Tables& before, const Tables& after) {
  if (SumsOfSeries(before) != SumsOfSeries(after)) return false;
  for (uint32_t kind = 0; kind < before.kinds.size(); ++kind) {
    for (uint32_t Row::* const side : {&Row::user, &Row::kernel}) {
      const SumsOfStack all = SumsOf(before, kind, side);
      for (const auto& [stack, sums] : SumsOf(after, kind, side)) {
        const auto found = all.find(stack);
        if (found == all.end() || found->second != sums) return false;
      }
    }
  }
  return true;
}

struct Report {
  size_t files = 0, samples = 0, folded_samples = 0;
  size_t bytes[2] = {}, nodes[2] = {}, functions[2] = {}, strings[2] = {},
         rows[2] = {};
  uint64_t cpu_ns = 0;
  bool has_same_sums = true;

  void Add(const Tables& tables, size_t size, size_t which) {
    bytes[which] += size;
    nodes[which] += tables.nodes.size() - 1;
    functions[which] += tables.functions.size();
    strings[which] += tables.strings.size();
    rows[which] += tables.rows.size();
  }
};

// Counts samples that end in a mark on either side.
uint64_t CountFolded(const Tables& tables) {
  std::vector<bool> is_mark;
  for (const Node& node : tables.nodes) {
    is_mark.push_back(!is_mark.empty() && IsMark(tables, node));
  }
  uint64_t count = 0;
  for (const Row& row : tables.rows) {
    if (is_mark[row.user] || is_mark[row.kernel]) count += row.count;
  }
  return count;
}

ksym::Status Measure(const std::string& directory, const FileName& name,
                     Report& report) {
  const auto before = ReadWhole(directory, name);
  if (!before) return ksym::Fail(before.error());
  if (!before->thinnings.empty()) return {};
  const uint64_t begin = profd::NowNs(CLOCK_PROCESS_CPUTIME_ID);
  const auto thinned = ThinFile(directory, name, [] { return false; });
  report.cpu_ns += profd::NowNs(CLOCK_PROCESS_CPUTIME_ID) - begin;
  if (!thinned) return ksym::Fail(thinned.error());
  const auto after = DecodeSegment(thinned->bytes);
  if (!after) return ksym::Fail(after.error());
  ++report.files;
  report.samples += before->count_sum;
  report.folded_samples += CountFolded(after->tables);
  report.Add(*before, SizeOfFile(directory + "/" + TextOf(name)), 0);
  report.Add(after->tables, thinned->bytes.size(), 1);
  report.has_same_sums &= HaveSameSums(*before, after->tables);
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string directory = arguments[1];
  const auto files = ListFiles(directory);
  ksym::Status done;
  if (!files) done = ksym::Fail(files.error());
  Report report;
  for (size_t i = 0; done && i < files->size(); ++i) {
    if ((*files)[i].is_segment) done = Measure(directory, (*files)[i], report);
  }
  if (!done) {
    fmt::print(stderr, "{}\n", done.error().message());
    return 1;
  }
  const auto pair = [](const size_t(&two)[2]) {
    return fmt::format("[{},{}]", two[0], two[1]);
  };
  rusage use = {};
  ::getrusage(RUSAGE_SELF, &use);
  fmt::print(
      "{{\"files\":{},\"samples\":{},\"folded_samples\":{},\"bytes\":{},"
      "\"nodes\":{},\"functions\":{},\"strings\":{},\"rows\":{},"
      "\"cpu_ms\":{},\"peak_kib\":{},\"same_sums\":{}}}\n",
      report.files, report.samples, report.folded_samples, pair(report.bytes),
      pair(report.nodes), pair(report.functions), pair(report.strings),
      pair(report.rows), report.cpu_ns / 1'000'000, use.ru_maxrss,
      report.has_same_sums);
  return report.has_same_sums ? 0 : 1;
}
