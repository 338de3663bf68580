// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/history/tables.h"

namespace profd::history {

// Gives functions, stacks, series and strings the places at which a file of
// them is smallest: like beside like, stacks in the order of a tree's branches.
// What they say stays, and so does the order of parts, settings and kinds.
// Strings that nothing names go. Memory: that of all but the rows once more.
// O(n log n).
void OrderTables(Tables& tables);

}  // namespace profd::history
