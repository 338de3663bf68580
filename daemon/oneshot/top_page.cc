// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_page.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

std::string KindOf(ThreadState state, const Profile& profile) {
  const std::string_view name =
      state == ThreadState::kRunning ? "cpu" : Name(state);
  // Without waits there is one kind, whatever it is called.
  const bool is_there = FindKind(profile.metadata.kinds, name) != nullptr;
  return is_there ? std::string(name) : std::string();
}

}  // namespace

ksym::Result<std::string> MakeTopPage(
    const std::vector<ProfileRing::Part>& parts, const TopPage& page) {
  Profile profile = ProfileOfWindow(parts);
  if (page.parked == ParkedRows::kHidden) {
    std::erase_if(profile.samples,
                  [](const ProfileSample& sample) { return sample.parked; });
  }
  auto shown = ShowKind(KindOf(page.state, profile), profile);
  if (!shown) return ksym::Fail(std::move(shown.error()));
  return Render(profile, RowOf(OutputFormat::kFlamegraph),
                {.by = OutputOptions::By::kComm});
}

ksym::Result<std::string> WriteTopPage(
    const std::vector<ProfileRing::Part>& parts, const TopPage& page) {
  auto bytes = MakeTopPage(parts, page);
  if (!bytes) return ksym::Fail(std::move(bytes.error()));
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  ::localtime_r(&now, &local);
  std::string name = fmt::format("ksym-top-{:%Y%m%d-%H%M%S}.html", local);
  const ksym::UniqueFd file(
      // The directory may be one in which others make files, as /tmp is.
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
             0666));
  if (!file.valid()) return ksym::FailErrno(errno, name);
  auto written = ksym::WriteAll(file.get(), *bytes);
  if (written) return name;
  ::unlink(name.c_str());
  return ksym::Fail(std::move(written.error()).WithContext(name));
}

}  // namespace profd
