// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/service/push_target.h"
#include "ksym/base/result.h"

namespace profd {

inline constexpr std::string_view kDefaultConfigPath =
    "/etc/ksym/ksym-profiled.json";

// What ksym-profiled was asked for. docs/service.md says what each key means.
struct ServiceConfig {
  uint64_t frequency_hz = 19;
  uint64_t interval_seconds = 10;
  // What profiles say of each sample; see kLabelWords in config.cc.
  std::vector<std::string> labels = {
      "comm", "pid", "cgroup", "unit", "container_id", "pod", "container_name"};
  // Variables of processes whose values become labels as well.
  std::vector<std::string> environment_labels;

  // Where what is known of containers on this machine is; empty: nowhere.
  struct Containers {
    std::string logs_directory = "/var/log";  // of kubelet
    std::string docker_directory = "/var/lib/docker/containers";
    std::string podman_directory =
        "/var/lib/containers/storage/overlay-containers";

    friend bool operator==(const Containers&, const Containers&) = default;
  } containers;

  struct Stacks {
    uint64_t max_depth = 127;
    std::string unwind = "auto";
    std::string runtimes = "auto";
    uint64_t memory_bytes = uint64_t{128} << 20;
    std::string cache_directory = "/var/cache/ksym-profiled";

    friend bool operator==(const Stacks&, const Stacks&) = default;
  } stacks;

  // Samples of threads that wait.
  struct Waiting {
    bool enabled = false;
    uint64_t frequency_hz = 19;  // of each thread's time

    friend bool operator==(const Waiting&, const Waiting&) = default;
  } waiting;

  struct Symbols {
    uint64_t cache_bytes = uint64_t{64} << 20;
    bool demangle = true;
    bool lines = false;
    bool inlines = false;
    uint64_t line_bytes = uint64_t{1} << 30;  // in stacks.cache_directory

    friend bool operator==(const Symbols&, const Symbols&) = default;
  } symbols;

  // Files are written where any of these was configured.
  struct Files {
    bool are_wanted = false;
    std::string directory = "/var/lib/ksym-profiled";  // empty: no files
    std::string format = "pprof";
    uint64_t max_bytes = uint64_t{1} << 30;
    uint64_t max_age_seconds = uint64_t{7} * 24 * 3600;

    // Empty: no files.
    std::string_view target() const {
      return are_wanted ? std::string_view(directory) : std::string_view();
    }
    friend bool operator==(const Files&, const Files&) = default;
  } files;

  // What is kept of all parts; see daemon/history.
  struct History {
    bool enabled = true;
    std::string directory = "/var/lib/ksym-profiled/history";
    uint64_t max_bytes = uint64_t{256} << 20;
    uint64_t max_age_seconds = uint64_t{30} * 24 * 3600;
    uint64_t thin_after_hours = 24;  // 0: never

    friend bool operator==(const History&, const History&) = default;
  } history;

  struct Http {
    std::vector<std::string> listen = {"unix:/run/ksym-profiled/http.sock"};
    std::string token_file;  // empty: TCP clients need no token
    uint64_t recent_bytes = uint64_t{32} << 20;
    uint64_t recent_seconds = 300;

    friend bool operator==(const Http&, const Http&) = default;
  } http;

  std::vector<PushTarget> push;

  struct PushSpool {
    std::string directory = "/var/lib/ksym-profiled/push";
    uint64_t max_bytes = uint64_t{256} << 20;  // of each target

    friend bool operator==(const PushSpool&, const PushSpool&) = default;
  } push_spool;

  // For this process; 0: none. See Guardrail.
  struct Limits {
    uint64_t cpu_percent = 50;  // of one CPU
    uint64_t memory_bytes = uint64_t{512} << 20;
    std::string own_priority = "auto";  // from the next start on

    friend bool operator==(const Limits&, const Limits&) = default;
  } limits;

  struct Log {
    std::string level = "info";

    friend bool operator==(const Log&, const Log&) = default;
  } log;

  friend bool operator==(const ServiceConfig&, const ServiceConfig&) = default;
};

// One key of the configuration: where its value goes, and what it may be.
struct ConfigKey {
  struct Number {
    uint64_t& (*value)(ServiceConfig&);
    uint64_t least;
    uint64_t most;
  };
  struct Flag {
    bool& (*value)(ServiceConfig&);
  };
  // One of several words.
  struct Choice {
    std::string& (*value)(ServiceConfig&);
    std::span<const std::string_view> (*words)();
  };
  // An absolute path of at most 4095 bytes, or empty for "none".
  struct Path {
    std::string& (*value)(ServiceConfig&);
  };
  // A list of addresses; see ParseListenAddress(). As a flag: with commas.
  struct Addresses {
    std::vector<std::string>& (*value)(ServiceConfig&);
  };

  // Some of several words, each once. As a flag: with commas.
  struct Words {
    std::vector<std::string>& (*value)(ServiceConfig&);
    std::span<const std::string_view> words;
  };

  // A list of URLs, or of objects with "url", "name" and "token_file". As a
  // flag: URLs with commas.
  struct Targets {
    std::vector<PushTarget>& (*value)(ServiceConfig&);
  };

  std::string_view path;  // e.g. "files.max_bytes"
  std::string_view help;  // one line for --help
  std::variant<Number, Flag, Choice, Path, Addresses, Words, Targets> kind;
};

// Every key there is; the file, the flags and the JSON Schema have the same.
std::span<const ConfigKey> ConfigKeys();

// The flag of a key: "--files-max-bytes".
std::string FlagOf(const ConfigKey& key);

// Sets a key from a flag's text. kInvalid says what it may be.
ksym::Status SetFromText(const ConfigKey& key, std::string_view text,
                         ServiceConfig& config);

// Parses a configuration file's text over the defaults. kInvalid and kCorrupt:
// a line per problem, "NAME:LINE: KEY: what is wrong"; 20 at the most.
ksym::Result<ServiceConfig> ParseConfig(std::string_view text,
                                        std::string_view name);

}  // namespace profd
