// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/history/layout.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// Old files lose their rare stacks: three quarters of all stacks of an hour
// were seen in one sample alone, and take a third of the file. Times stay, as
// they cost nearly nothing.

// Folds each stack that one sample has into the stack of its callers, where it
// is kRareCallees, a callee that only says so: what functions used themselves
// stays as it is, and so does what each stack above, each series, each part and
// each kind of samples has all together. Stacks of one function stay whole.
//
// Where samples of a kind have values one of them may be most of the time, as a
// wait for a whole second is. Such a sample is rare only if it stands for no
// more than samples of its kind in the file do on average: what is folded of
// such a kind is small, whatever its unit.
//
// What no stack names any more goes, and the tables are ordered anew. Tables
// that were thinned out before stay as they are. Memory: some bytes a node.
// O(n log n).
void ThinTables(Tables& tables);

struct ThinnedFile {
  std::string bytes;
  uint32_t stacks = 0;  // that were folded
};
// What takes the place of a segment, which was not thinned out before and which
// FitTogether() has found small enough. Memory: as for Compact(). kLimit where
// `is_over`, which is asked between reading, thinning and writing, says so.
ksym::Result<ThinnedFile> ThinFile(const std::string& directory,
                                   const FileName& name,
                                   const std::function<bool()>& is_over);

}  // namespace profd::history
