// SPDX-License-Identifier: Apache-2.0
#include "daemon/ui/show_page.h"

#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "daemon/base/own_capabilities.h"
#include "daemon/http/http_token.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/open_page.h"
#include "daemon/oneshot/stop_signals.h"
#include "daemon/ui/loopback.h"
#include "daemon/ui/page_gate.h"
#include "daemon/ui/relay.h"

namespace profd {
namespace {

using ksym::Status;

// Root opens the socket as its group may, as it will have no capability. Does
// nothing where the socket is not there: asking it will say so.
Status TakeGroupOf(const std::string& socket) {
  struct stat status = {};
  if (::geteuid() != 0 || ::stat(socket.c_str(), &status) != 0) return {};
  if (::setgroups(0, nullptr) != 0 || ::setgid(status.st_gid) != 0) {
    return ksym::FailErrno(errno, "setgid");
  }
  return {};
}

bool HasDisplay() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

// A file is removed with this.
class PageFile {
 public:
  explicit PageFile(std::string path) : path_(std::move(path)) {}
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;
  ~PageFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The file that leads a browser to the address, or none.
std::string StartBrowser(const std::string& address) {
  auto page = WritePageLeadingTo(address);
  if (!page) {
    PrintMessage(
        fmt::format("open the address yourself: {}\n", page.error().message()));
    return {};
  }
  if (auto opened = OpenPage(*page); !opened) {
    PrintMessage(fmt::format("open the address yourself: {}\n",
                             opened.error().message()));
  }
  return *page;
}

// The service is there and keeps a history, or the reason why there is nothing
// to open.
Status CheckService(const std::string& socket) {
  const auto status = AskStatus(socket, "/");
  if (!status) return ksym::Fail(status.error());
  if (*status == 404) {
    return ksym::Fail(ksym::ErrorCode::kNotFound,
                      "the service keeps no history: see history.enabled in "
                      "ksym-profiled.json(5)");
  }
  return {};
}

}  // namespace

Status ShowPage(const UiArguments& arguments) {
  auto listeners = ListenOnLoopback(arguments.port);
  if (!listeners) return ksym::Fail(std::move(listeners.error()));
  auto token = MakeToken();
  if (!token) return ksym::Fail(std::move(token.error()));
  const std::string address =
      fmt::format("http://{}/#token={}", listeners->host, *token);
  // From here on a signal waits until it is looked for, so that the file that
  // the browser gets is removed.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  const bool opens = !arguments.no_browser && HasDisplay();
  if (auto taken = TakeGroupOf(arguments.socket); !taken) return taken;
  if (auto there = CheckService(arguments.socket); !there) return there;
  // Before the capabilities go: behind sudo the browser is the caller's. Its
  // request waits in the queue of the listener.
  const PageFile page(opens ? StartBrowser(address) : std::string());
  if (auto dropped = DropCapabilities(); !dropped) return dropped;
  auto signals = StopSignals::Install();
  if (!signals) return ksym::Fail(std::move(signals.error()));
  auto gate =
      PageGate::Open(std::move(*listeners),
                     {.socket = arguments.socket, .token = std::move(*token)});
  if (!gate) return ksym::Fail(std::move(gate.error()));
  PrintToStdout(address + "\n");
  PrintMessage("Ctrl-C ends it\n");
  while (signals->Wait(std::chrono::hours(1)) != StopSignals::Event::kStop) {
  }
  return {};
}

}  // namespace profd
