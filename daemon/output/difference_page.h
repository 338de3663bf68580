// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "daemon/profile/profile.h"

namespace profd {

// What a difference is called: the two profiles' names, such as their files'.
struct DifferenceNames {
  std::string_view before;
  std::string_view after;
};

// The flame graph page of two profiles: widths are those of one of them, the
// colours say where there is more or less than before. Measured as Compare()
// does (hot_spots.h). Memory: both profiles again, and the page.
std::string RenderDifferencePage(const Profile& before, const Profile& after,
                                 const DifferenceNames& names);

// The data of that page alone, as JSON: for EmptyFlamePage() (flame_page.h).
std::string RenderDifferenceData(const Profile& before, const Profile& after,
                                 const DifferenceNames& names);

}  // namespace profd
