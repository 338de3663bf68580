// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/service/config.h"
#include "ksym/base/result.h"
#include "ksym/cli/command_line.h"

namespace profd {

// What the command line of ksym-profiled says. Flags are kept as texts: they
// win over the file again each time that is read.
struct ServiceOptions {
  std::string config_path = std::string(kDefaultConfigPath);
  bool config_given = false;  // else a file that is not there is no error
  bool check_config = false;
  std::vector<std::pair<const ConfigKey*, std::string>> flags;
};

// Options, or a text to print and a status to exit with.
struct ParsedServiceCommandLine {
  std::optional<ServiceOptions> options;
  ksym::CommandLineEnd end;
};

ParsedServiceCommandLine ParseServiceCommandLine(int argc,
                                                 const char* const* argv);

// The file, and over it the flags. What is wrong is one line per problem that
// names the file, line and key, or the flag.
ksym::Result<ServiceConfig> LoadConfig(const ServiceOptions& options);

}  // namespace profd
