// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace profd {

// The files of the history's page. They have no data, so that anybody may have
// them; what they show is below kHistoryPath.
inline constexpr std::array<std::string_view, 6> kPageFiles = {
    "/", "/history.css", "/history.js", "/flame", "/flame.css", "/flame.js"};
inline constexpr std::string_view kHistoryPath = "/api/history/";

constexpr bool IsPageFile(std::string_view path) {
  return std::ranges::find(kPageFiles, path) != kPageFiles.end();
}

}  // namespace profd
