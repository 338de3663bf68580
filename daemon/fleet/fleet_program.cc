// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet_program.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "daemon/base/own_capabilities.h"
#include "daemon/fleet/fleet.h"
#include "daemon/fleet/fleet_api.h"
#include "daemon/http/http_token.h"
#include "daemon/http/page_files.h"
#include "daemon/service/http_server.h"
#include "daemon/service/listen_address.h"
#include "daemon/service/log.h"
#include "ksym/base/result.h"

namespace profd::fleet {
namespace {

using ksym::Fail;
using ksym::Result;

constexpr int kFailure = 1;

Result<ClickHouse> OpenDatabase(const FleetOptions& options) {
  ClickHouse::Settings settings = {.url = options.clickhouse};
  if (!options.login_file.empty()) {
    auto login = ReadToken(options.login_file);
    if (!login) return Fail(std::move(login.error()));
    settings.login = std::move(*login);
  }
  return ClickHouse::Make(settings);
}

// Where it listens, and what a browser must know.
struct Door {
  HttpServer::Settings settings;
  std::string address;  // of the page, as it is printed
};

Result<Door> MakeDoor(const FleetOptions& options) {
  const auto listen = ParseListenAddress(options.listen);
  if (!listen) return Fail(listen.error());
  if (!listen->path.empty()) {
    return Fail(ksym::ErrorCode::kInvalid,
                options.listen + ": no browser reaches a Unix socket");
  }
  const bool has_file = !options.token_file.empty();
  auto token = has_file ? ReadToken(options.token_file) : MakeToken();
  if (!token) return Fail(std::move(token.error()));
  Door door = {.settings = {.listen = {options.listen},
                            .token = *token,
                            .wants_own_host = listen->is_loopback()},
               .address = "http://" + options.listen + "/"};
  // The one who made the file knows what is in it.
  if (!has_file) door.address += "#token=" + *token;
  return door;
}

Result<std::unique_ptr<HttpServer>> Open(const Door& door, FleetApi& api,
                                         ServiceCounters& counters) {
  auto server = HttpServer::Start(
      [&api](const HttpRequest& request) { return api.Respond(request); },
      counters, IsPageFile);
  if (!server) return server;
  auto change = (*server)->Prepare(door.settings);
  if (!change) return Fail(std::move(change.error()));
  (*server)->Apply(std::move(*change));
  return server;
}

int ReportFailed(const ksym::Error& error) {
  Log(LogLevel::kError, error.message());
  return kFailure;
}

}  // namespace

int RunFleet(const FleetOptions& options) {
  StartLog(LogLevel::kInfo, "ksym-fleet");
  // Before other threads start, which are not to get them.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  if (auto dropped = DropCapabilities(); !dropped) {
    return ReportFailed(dropped.error());
  }
  auto database = OpenDatabase(options);
  if (!database) return ReportFailed(database.error());
  const auto door = MakeDoor(options);
  if (!door) return ReportFailed(door.error());
  Fleet fleet(std::move(*database));
  FleetApi api(fleet);
  ServiceCounters counters;
  const auto server = Open(*door, api, counters);
  if (!server) return ReportFailed(server.error());
  if (std::printf("%s\n", door->address.c_str()) < 0 ||
      std::fflush(stdout) != 0) {
    return kFailure;
  }
  int signal = 0;
  while (::sigwait(&ends, &signal) != 0) {
  }
  // Nothing is kept, and what is being answered may wait for the database.
  ::_exit(0);
}

}  // namespace profd::fleet
