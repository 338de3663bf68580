// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/open_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>

#include "ksym/base/text.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

using std::chrono::milliseconds;

constexpr const char* kOpener = "xdg-open";
constexpr int kNoOpener = 127;  // as a shell says it
constexpr milliseconds kPatience(1000);
constexpr milliseconds kLookPeriod(10);

// The user behind sudo.
struct Caller {
  uid_t user = 0;
  gid_t group = 0;
  std::string name;
  std::string home;
};

std::optional<Caller> CallerOfSudo() {
  const char* text = std::getenv("SUDO_UID");
  if (::geteuid() != 0 || text == nullptr) return std::nullopt;
  const auto user = ksym::ParseUnsigned<uint32_t>(text, 10);
  if (!user || *user == 0) return std::nullopt;
  const passwd* entry = ::getpwuid(*user);
  if (entry == nullptr) return std::nullopt;
  return Caller{.user = entry->pw_uid,
                .group = entry->pw_gid,
                .name = entry->pw_name,
                .home = entry->pw_dir};
}

void SetIfMissing(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 0);
}

// What sudo(8) took out of the environment and a desktop needs.
void BecomeCaller(const Caller& caller) {
  // The user last: without root's rights groups could not be set any more.
  if (::initgroups(caller.name.c_str(), caller.group) != 0 ||
      ::setgid(caller.group) != 0 || ::setuid(caller.user) != 0) {
    ::_exit(126);
  }
  ::setenv("HOME", caller.home.c_str(), 1);
  ::setenv("USER", caller.name.c_str(), 1);
  ::setenv("LOGNAME", caller.name.c_str(), 1);
  const std::string directory = fmt::format("/run/user/{}", caller.user);
  if (::access(directory.c_str(), X_OK) != 0) return;
  ::setenv("XDG_RUNTIME_DIR", directory.c_str(), 1);
  SetIfMissing("DBUS_SESSION_BUS_ADDRESS", "unix:path=" + directory + "/bus");
  if (::access((directory + "/wayland-0").c_str(), F_OK) == 0) {
    SetIfMissing("WAYLAND_DISPLAY", "wayland-0");
  }
}

[[noreturn]] void RunOpener(const std::string& path,
                            const std::optional<Caller>& caller) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  // Ctrl-C on our terminal is not meant for it.
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  if (caller) BecomeCaller(*caller);
  ::execlp(kOpener, kOpener, path.c_str(), nullptr);
  ::_exit(kNoOpener);
}

ksym::Status StatusOf(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoOpener) {
    return ksym::Fail(ksym::ErrorCode::kNotFound,
                      "there is no xdg-open (Debian's xdg-utils)");
  }
  return ksym::Fail(ksym::ErrorCode::kIo, "xdg-open failed");
}

}  // namespace

ksym::Status OpenPage(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  const auto caller = CallerOfSudo();
  const pid_t child = ::fork();
  if (child < 0) return ksym::FailErrno(errno, "fork");
  if (child == 0) RunOpener(error ? path : absolute, caller);
  // xdg-open may go on as long as the browser does, which would keep us.
  for (milliseconds waited(0); waited < kPatience; waited += kLookPeriod) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return StatusOf(status);
    std::this_thread::sleep_for(kLookPeriod);
  }
  return {};
}

ksym::Result<std::string> WritePageLeadingTo(const std::string& address) {
  // A user's own directory of the session, which no other user can list.
  const char* session = std::getenv("XDG_RUNTIME_DIR");
  const auto caller = CallerOfSudo();
  const bool is_own =
      !caller && session != nullptr && ::access(session, W_OK | X_OK) == 0;
  std::error_code error;
  const auto directory = is_own ? std::filesystem::path(session)
                                : std::filesystem::temp_directory_path(error);
  if (error) return ksym::FailErrno(error.value(), "TMPDIR");
  constexpr std::string_view kEnding = ".html";
  std::string path = (directory / "ksym-XXXXXX").string().append(kEnding);
  const ksym::UniqueFd file(
      ::mkostemps(path.data(), static_cast<int>(kEnding.size()), O_CLOEXEC));
  if (!file.valid()) return ksym::FailErrno(errno, path);
  const std::string text = fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><title>ksym</title>"
      "<meta name=\"referrer\" content=\"no-referrer\">"
      "<meta http-equiv=\"refresh\" content=\"0;url={0}\">"
      "<a href=\"{0}\">The history</a>\n",
      address);
  if (::write(file.get(), text.data(), text.size()) !=
          static_cast<ssize_t>(text.size()) ||
      (caller && ::fchown(file.get(), caller->user, caller->group) != 0)) {
    const int why = errno;
    ::unlink(path.c_str());
    return ksym::FailErrno(why, path);
  }
  return path;
}

}  // namespace profd
