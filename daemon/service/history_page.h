// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/service/http_message.h"

namespace profd {

// The page of the history, at "/", with its styles and scripts: files that are
// part of the program and have no data, so that anybody may have them.
class HistoryPage {
 public:
  struct File {
    std::string_view path;
    std::string_view content_type;
    std::string (*make)() = nullptr;
  };

  // What the page tells apart: units, processes and the like of one machine, or
  // services and hosts.
  enum class Of : uint8_t { kMachine, kFleet };

  // Null: there is no such file.
  static const File* Find(std::string_view path, Of of = Of::kMachine);
  static HttpResponse Respond(const File& file);
};

}  // namespace profd
