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

std::string HistoryScript(std::string_view rows) {
  std::string script;
  for (const std::string_view part :
       {rows, web::kTimesJs, web::kRangeStateJs, web::kRowNamesJs,
        web::kServiceJs, web::kLanesJs, web::kHeatMapJs, web::kSlicesJs,
        web::kRowListJs, web::kKindSwitchJs, web::kFunctionGridJs,
        web::kFlameFrameJs, web::kLiveJs, web::kDownloadsJs, web::kChoicesJs,
        web::kFiltersJs, web::kSidesJs, web::kHistoryJs}) {
    script += part;
  }
  return script;
}

constexpr size_t kScript = 2;  // of kFiles

const std::array<HistoryPage::File, kPageFiles.size()> kFiles = {{
    {kPageFiles[0], kHtmlType, [] { return std::string(web::kHistoryHtml); }},
    {kPageFiles[1], kCssType, [] { return std::string(web::kHistoryCss); }},
    {kPageFiles[kScript], kScriptType,
     [] { return HistoryScript(web::kMachineRowsJs); }},
    {kPageFiles[3], kHtmlType, EmptyFlamePage},
    {kPageFiles[4], kCssType, FlamePageStyle},
    {kPageFiles[5], kScriptType, FlamePageScript},
}};

const HistoryPage::File kFleetScript = {
    kPageFiles[kScript], kScriptType,
    [] { return HistoryScript(web::kFleetRowsJs); }};

}  // namespace

const HistoryPage::File* HistoryPage::Find(std::string_view path, Of of) {
  if (of == Of::kFleet && path == kFleetScript.path) return &kFleetScript;
  const auto found = std::ranges::find(kFiles, path, &File::path);
  return found == kFiles.end() ? nullptr : &*found;
}

HttpResponse HistoryPage::Respond(const File& file) {
  return {.content_type = std::string(file.content_type),
          .body = file.make(),
          .policy = kServicePage};
}

}  // namespace profd
