// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/history_page.h"

#include <algorithm>
#include <array>

#include "daemon/http/page_files.h"
#include "daemon/output/flame_page.h"
#include "history_page_files.h"

namespace profd {
namespace {

constexpr std::string_view kHtmlType = "text/html; charset=utf-8";
constexpr std::string_view kCssType = "text/css; charset=utf-8";
constexpr std::string_view kScriptType = "text/javascript; charset=utf-8";

std::string HistoryScript() {
  std::string script;
  for (const std::string_view part :
       {web::kTimesJs, web::kRangeStateJs, web::kRowNamesJs, web::kServiceJs,
        web::kLanesJs, web::kHeatMapJs, web::kKindSwitchJs,
        web::kFunctionGridJs, web::kFlameFrameJs, web::kLiveJs,
        web::kDownloadsJs, web::kHistoryJs}) {
    script += part;
  }
  return script;
}

const std::array<HistoryPage::File, kPageFiles.size()> kFiles = {{
    {kPageFiles[0], kHtmlType, [] { return std::string(web::kHistoryHtml); }},
    {kPageFiles[1], kCssType, [] { return std::string(web::kHistoryCss); }},
    {kPageFiles[2], kScriptType, HistoryScript},
    {kPageFiles[3], kHtmlType, EmptyFlamePage},
    {kPageFiles[4], kCssType, FlamePageStyle},
    {kPageFiles[5], kScriptType, FlamePageScript},
}};

}  // namespace

const HistoryPage::File* HistoryPage::Find(std::string_view path) {
  const auto found = std::ranges::find(kFiles, path, &File::path);
  return found == kFiles.end() ? nullptr : &*found;
}

HttpResponse HistoryPage::Respond(const File& file) {
  return {.content_type = std::string(file.content_type),
          .body = file.make(),
          .policy = kServicePage};
}

}  // namespace profd
