// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/tables.h"

namespace profd::history {

// Which samples of a history are wanted; an empty text asks for nothing. Whole
// names match also as they are printed (ksym/base/printable.h).
struct Selection {
  // Parts that begin in [from, until), in nanoseconds since 1970, or one that
  // all of it lies within; with `by_slice` samples whose slice begins in it.
  uint64_t from_unix_ns = 0;
  uint64_t until_unix_ns = std::numeric_limits<uint64_t>::max();
  bool by_slice = false;
  // No part that began before.
  bool begun_only = false;
  std::string unit = {};  // "nginx.service", or "nginx" for that
  // As PodNames says: a name, or the beginning of an id.
  std::string container = {};
  std::string pod = {};
  std::string command = {};  // the whole name of a thread
  std::string kind = {};     // SampleKind::name
  // Stacks with a function whose name has this in it, or is what follows "=".
  std::string function = {};
  std::optional<uint32_t> pid = {};

  // Whether it asks for anything but whole parts and a kind.
  bool HasFilter() const {
    return pid || by_slice || !unit.empty() || !container.empty() ||
           !pod.empty() || !command.empty() || !function.empty();
  }
};

// Why nothing may be known of a time that is chosen by slices.
inline constexpr std::string_view kNoSlicesKnown =
    ", or not to 20 ms: samples have that for an hour";

// The wanted parts, series and stacks of one file. The tables must live longer
// and stay as they are. Cost: once over parts, series, functions and nodes.
class FileFilter {
 public:
  FileFilter(const Tables& tables, const Selection& selection);

  bool HasPart(uint32_t part) const { return parts_[part]; }
  // A wanted part, by slices as much of it as is in the time.
  Part PartIn(uint32_t part) const;
  // Whether a row is wanted, whose part is.
  bool HasRow(const Row& row) const {
    return series_[row.series] &&
           (nodes_.empty() || (nodes_[row.user] | nodes_[row.kernel]) != 0) &&
           (!by_slice_ || HasSlice(row));
  }

 private:
  bool HasSlice(const Row& row) const {
    const uint64_t begin = BeginOf(tables_.parts[row.part], row);
    return row.slice != 0 && begin >= from_unix_ns_ && begin < until_unix_ns_;
  }
  void FindParts(const Selection& selection);
  void FindSeries(const Selection& selection);
  void FindNodes(const Selection& selection);

  const Tables& tables_;
  const bool by_slice_;
  const uint64_t from_unix_ns_;
  const uint64_t until_unix_ns_;
  std::vector<bool> parts_;
  std::vector<bool> series_;
  std::vector<uint8_t> nodes_;  // 1: wanted; empty: all
};

}  // namespace profd::history
