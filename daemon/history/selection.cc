// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/selection.h"

#include <string>
#include <string_view>

#include "daemon/history/pod_names.h"
#include "daemon/output/cgroup_path.h"

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

}  // namespace

FileFilter::FileFilter(const Tables& tables, const Selection& selection)
    : tables_(tables) {
  FindParts(selection);
  FindSeries(selection);
  if (!selection.function.empty()) FindNodes(selection);
}

void FileFilter::FindParts(const Selection& selection) {
  for (const Part& part : tables_.parts) {
    parts_.push_back(part.start_unix_ns >= selection.from_unix_ns &&
                     part.start_unix_ns < selection.until_unix_ns);
  }
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
  std::vector<bool> functions;
  functions.reserve(tables_.functions.size());
  for (const Function& function : tables_.functions) {
    functions.push_back(
        IsNamed(tables_.strings.Get(function.name), selection.function));
  }
  nodes_.resize(tables_.nodes.size());
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = tables_.nodes[i];
    if (functions[node.function] || nodes_[node.parent]) nodes_[i] = true;
  }
}

}  // namespace profd::history
