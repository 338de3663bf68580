// SPDX-License-Identifier: Apache-2.0
#pragma once

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

  // Null: there is no such file.
  static const File* Find(std::string_view path);
  static HttpResponse Respond(const File& file);
};

}  // namespace profd
