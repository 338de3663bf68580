// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/selection.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "daemon/history/pod_names.h"
#include "daemon/output/cgroup_path.h"
#include "ksym/base/byte_reader.h"

namespace profd::history {
namespace {

bool IsOfUnit(std::string_view cgroup, std::string_view unit) {
  const std::string_view of_path = ParseCgroupPath(cgroup).unit;
  return IsText(of_path, unit) || (of_path.starts_with(unit) &&
                                   of_path.substr(unit.size()) == ".service");
}

bool IsNamed(std::string_view name, std::string_view wanted) {
  return wanted.starts_with('=') ? IsText(name, wanted.substr(1))
                                 : name.find(wanted) != std::string_view::npos;
}

bool HasTimeOf(const Part& part, const Selection& selection) {
  const uint64_t from = selection.from_unix_ns;
  const uint64_t until = selection.until_unix_ns;
  const uint64_t start = part.start_unix_ns;
  if (!selection.by_slice) {
    if (start >= from) return start < until;
    // A part that is longer than a second may have one that none begins in.
    return !selection.begun_only && from < until &&
           until - start <= part.duration_ns;
  }
  // The first slice of a part may have begun before it.
  return (start >= from || from - start < part.duration_ns) &&
         (start < until || start - until < kSliceNs);
}

}  // namespace

FileFilter::FileFilter(const Tables& tables, const Selection& selection)
    : tables_(tables),
      by_slice_(selection.by_slice),
      from_unix_ns_(selection.from_unix_ns),
      until_unix_ns_(selection.until_unix_ns) {
  FindParts(selection);
  FindSeries(selection);
  if (!selection.function.empty()) FindNodes(selection);
}

void FileFilter::FindParts(const Selection& selection) {
  const auto has_slice = [](const Row& row) { return row.slice != 0; };
  // A file without slices knows no time so exactly.
  const bool tells = !by_slice_ || tables_.rows.empty() ||
                     std::ranges::any_of(tables_.rows, has_slice);
  for (const Part& part : tables_.parts) {
    parts_.push_back(tells && HasTimeOf(part, selection));
  }
}

Part FileFilter::PartIn(uint32_t part) const {
  Part in = tables_.parts[part];
  if (!by_slice_) return in;
  const uint64_t end = ksym::CheckedAdd(in.start_unix_ns, in.duration_ns)
                           .value_or(in.start_unix_ns);
  in.start_unix_ns =
      std::clamp(in.start_unix_ns, from_unix_ns_, until_unix_ns_ - 1);
  in.duration_ns = std::max(std::min(end, until_unix_ns_), in.start_unix_ns) -
                   in.start_unix_ns;
  return in;
}

void FileFilter::FindSeries(const Selection& wanted) {
  const PodNames names(tables_);
  for (const Series& series : tables_.series) {
    const std::string_view cgroup = tables_.strings.Get(series.cgroup);
    series_.push_back(
        (!wanted.pid || series.pid == *wanted.pid) &&
        (wanted.command.empty() ||
         IsText(tables_.strings.Get(series.comm), wanted.command)) &&
        (wanted.kind.empty() ||
         tables_.strings.Get(tables_.kinds[series.kind].name) == wanted.kind) &&
        (wanted.unit.empty() || IsOfUnit(cgroup, wanted.unit)) &&
        (wanted.container.empty() ||
         names.IsOfContainer(series.cgroup, wanted.container)) &&
        (wanted.pod.empty() || names.IsOfPod(series.cgroup, wanted.pod)));
  }
}

// Callers come before what they call, so one pass tells which stacks have a
// wanted function.
void FileFilter::FindNodes(const Selection& selection) {
  std::vector<uint8_t> functions;
  functions.reserve(tables_.functions.size());
  for (const Function& function : tables_.functions) {
    functions.push_back(
        IsNamed(tables_.strings.Get(function.name), selection.function) ? 1
                                                                        : 0);
  }
  nodes_.resize(tables_.nodes.size());
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = tables_.nodes[i];
    nodes_[i] = functions[node.function] | nodes_[node.parent];
  }
}

}  // namespace profd::history
