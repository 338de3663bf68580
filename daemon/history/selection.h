// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "daemon/history/tables.h"

namespace profd::history {

// Which samples of a history are wanted; an empty text asks for nothing. Whole
// names match also as they are printed (ksym/base/printable.h).
struct Selection {
  // Parts that begin in [from, until), in nanoseconds since 1970.
  uint64_t from_unix_ns = 0;
  uint64_t until_unix_ns = std::numeric_limits<uint64_t>::max();
  std::string unit = {};  // "nginx.service", or "nginx" for that
  // As PodNames says: a name, or the beginning of an id.
  std::string container = {};
  std::string pod = {};
  std::string command = {};  // the whole name of a thread
  std::string kind = {};     // SampleKind::name
  // Stacks with a function whose name has this in it, or is what follows "=".
  std::string function = {};
  std::optional<uint32_t> pid = {};

  // Whether it asks for anything but a time and a kind.
  bool HasFilter() const {
    return pid || !unit.empty() || !container.empty() || !pod.empty() ||
           !command.empty() || !function.empty();
  }
};

// The wanted parts, series and stacks of one file. The tables must live longer
// and stay as they are. Cost: once over parts, series, functions and nodes.
class FileFilter {
 public:
  FileFilter(const Tables& tables, const Selection& selection);

  bool HasPart(uint32_t part) const { return parts_[part]; }
  // Whether a row is wanted, whose part is.
  bool HasRow(const Row& row) const {
    return series_[row.series] &&
           (nodes_.empty() || nodes_[row.user] || nodes_[row.kernel]);
  }

 private:
  void FindParts(const Selection& selection);
  void FindSeries(const Selection& selection);
  void FindNodes(const Selection& selection);

  const Tables& tables_;
  std::vector<bool> parts_;
  std::vector<bool> series_;
  std::vector<bool> nodes_;  // empty: all
};

}  // namespace profd::history
