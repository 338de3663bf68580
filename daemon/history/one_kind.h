// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "daemon/profile/sample_kind.h"

namespace profd::history {

// The one kind of samples that a table or a time line adds up: that of a name,
// or, where none was asked for, the first of the first part; of a unit, or that
// of the first kind with this name. Its samples count as what they stand for,
// so that those of several rates can be added.
class OneKind {
 public:
  explicit OneKind(std::string name, std::string unit = {})
      : name_(std::move(name)), unit_(std::move(unit)) {}

  // Before the rows of a file are asked for.
  void Enter(const Tables& tables, const FileFilter& filter);
  // Whether the samples of a series of that file are of the kind.
  bool Has(const Series& series) const { return is_it_[series.kind]; }
  // The time or the like that they stand for, in unit().
  uint64_t ValueOfRow(const Series& series, const Row& row) const {
    return ValueOf(kinds_[series.kind], row.count, row.value);
  }

  // Empty: there was no part yet.
  const std::string& name() const { return name_; }
  const std::string& unit() const { return unit_; }

 private:
  std::string name_;
  std::string unit_;
  std::vector<SampleKind> kinds_;  // of the file
  std::vector<bool> is_it_;        // by kind
};

}  // namespace profd::history
