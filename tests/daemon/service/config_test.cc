// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "ksym/base/file.h"

namespace profd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto config = ParseConfig(text, "f.json");
  return config ? "no error" : config.error().message();
}

// An empty object is the defaults.
TEST(ConfigTest, EmptyObjectIsTheDefaults) {
  const auto config = ParseConfig("{}", "f.json");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(*config, ServiceConfig());
  EXPECT_EQ(config->frequency_hz, 19u);
  EXPECT_EQ(config->interval_seconds, 10u);
}

// Values of each type arrive in their fields; comments may stand anywhere.
TEST(ConfigTest, ReadsEachTypeAndComments) {
  const auto config = ParseConfig(R"(// at the top
{
  "frequency_hz": 99,  // a number
  "symbols": {"demangle": false /* a flag */},
  "files": {
    // "max_bytes": 1,
    "format": "folded",
    "directory": "/srv/profiles"
  }
}
)",
                                  "f.json");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->frequency_hz, 99u);
  EXPECT_FALSE(config->symbols.demangle);
  EXPECT_EQ(config->files.format, "folded");
  EXPECT_EQ(config->files.directory, "/srv/profiles");
  EXPECT_EQ(config->files.max_bytes, ServiceConfig().files.max_bytes);
}

// A history is kept, and files are written where any key of them is there: what
// was configured before there was a history writes its files as ever.
TEST(ConfigTest, FilesAreWrittenWhereAsked) {
  const auto target = [](std::string_view text) {
    const auto config = ParseConfig(text, "f.json");
    EXPECT_TRUE(config) << text;
    EXPECT_TRUE(config->history.enabled);
    return config ? std::string(config->files.target()) : "none";
  };
  const std::string usual = "/var/lib/ksym-profiled";
  EXPECT_EQ(target("{}"), "");
  EXPECT_EQ(target(R"({"frequency_hz": 49, "files": {}})"), "");
  EXPECT_EQ(target(R"({"files": {"format": "json"}})"), usual);
  EXPECT_EQ(target(R"({"files": {"max_bytes": 65536}})"), usual);
  EXPECT_EQ(target(R"({"files": {"format": "json", "directory": ""}})"), "");
  EXPECT_EQ(target(R"({"files": {"directory": "", "format": "json"}})"), "");
  EXPECT_EQ(target(R"({"files": {"directory": "/srv"}})"), "/srv");
}

// A flag asks for files as a key of the file does.
TEST(ConfigTest, FilesAreWrittenWhereAFlagAsks) {
  const auto key =
      std::ranges::find(ConfigKeys(), "files.format", &ConfigKey::path);
  ASSERT_NE(key, ConfigKeys().end());
  ServiceConfig config;
  EXPECT_EQ(config.files.target(), "");
  ASSERT_TRUE(SetFromText(*key, "json", config));
  EXPECT_EQ(config.files.target(), "/var/lib/ksym-profiled");
}

// Waits are sampled only where that is asked for, at a rate within bounds.
TEST(ConfigTest, Waiting) {
  EXPECT_FALSE(ServiceConfig().waiting.enabled);
  const auto config = ParseConfig(
      R"({"waiting": {"enabled": true, "frequency_hz": 1000}})", "f.json");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->waiting.enabled);
  EXPECT_EQ(config->waiting.frequency_hz, 1000u);
  for (const char* rate : {"0", "1001"}) {
    EXPECT_EQ(
        ErrorOf(std::string("{\"waiting\": {\"frequency_hz\": ") + rate + "}}"),
        std::string("f.json:1: waiting.frequency_hz: ") + rate +
            " is not from 1 to 1000");
  }
}

// What is wrong is said with the file, the line and the key's path.
TEST(ConfigTest, NamesFileLineAndKey) {
  EXPECT_EQ(ErrorOf("{\n  \"frequency\": 99\n}"),
            "f.json:2: frequency: unknown key (there are frequency_hz, "
            "interval_seconds, labels, environment_labels, containers, "
            "stacks, waiting, symbols, files, "
            "history, http, push, push_spool, limits, log)");
  EXPECT_EQ(ErrorOf("{\"files\": {\n\n\"size\": 1}}"),
            "f.json:3: files.size: unknown key (there are directory, format, "
            "max_bytes, max_age_seconds)");
  EXPECT_EQ(ErrorOf("{\"frequency_hz\":\n0\n}"),
            "f.json:2: frequency_hz: 0 is not from 1 to 1000");
  EXPECT_EQ(ErrorOf("{\n\"frequency_hz\": \"99\"}"),
            "f.json:2: frequency_hz: wants a whole number and not a text");
  EXPECT_EQ(
      ErrorOf("{\"files\": {\"format\": \"svg\"}}"),
      "f.json:1: files.format: \"svg\" is none of folded, json, pprof, otlp");
  EXPECT_EQ(ErrorOf("{\"files\": {\"directory\": \"here\"}}"),
            "f.json:1: files.directory: \"here\" is not an absolute path");
  EXPECT_EQ(ErrorOf("{\"files\": 1}"),
            "f.json:1: files: wants an object and not a whole number");
  EXPECT_EQ(ErrorOf("[]"), "f.json:1: wants an object, {...}, and not a list");
}

// The type is checked, not only the text: 1.5, -1, true and null are no whole
// numbers.
TEST(ConfigTest, RefusesOtherTypes) {
  for (const char* value : {"1.5", "-1", "true", "null", "[1]", "{}", "1e1"}) {
    EXPECT_THAT(ErrorOf(std::string("{\"frequency_hz\": ") + value + "}"),
                HasSubstr("f.json:1: frequency_hz: wants a whole number"))
        << value;
  }
  EXPECT_THAT(ErrorOf("{\"symbols\": {\"demangle\": 1}}"),
              HasSubstr("wants true or false and not a whole number"));
}

// All problems are said at once.
TEST(ConfigTest, SaysAllProblems) {
  EXPECT_EQ(ErrorOf("{\"a\": 1,\n\"frequency_hz\": 5000,\n\"log\": []}"),
            "f.json:1: a: unknown key (there are frequency_hz, "
            "interval_seconds, labels, environment_labels, containers, "
            "stacks, waiting, symbols, files, "
            "history, http, push, push_spool, limits, log)\n"
            "f.json:2: frequency_hz: 5000 is not from 1 to 1000\n"
            "f.json:3: log: wants an object and not a list");
}

// Text that is no JSON is refused with its line; so is a key that is there
// twice, of which one would be ignored, and a value that is nested too deep.
TEST(ConfigTest, RefusesWhatIsNoJson) {
  EXPECT_THAT(ErrorOf("{\n\"frequency_hz\" 1}"), HasSubstr("f.json:2: "));
  EXPECT_THAT(ErrorOf(""), HasSubstr("f.json:1: "));
  EXPECT_THAT(ErrorOf("{} {}"), HasSubstr("f.json:1: "));
  EXPECT_THAT(ErrorOf("{\"a\": 18446744073709551616000}"),
              HasSubstr("unknown key"));
  EXPECT_EQ(ErrorOf("{\"frequency_hz\": 1,\n\"frequency_hz\": 2}"),
            "f.json:2: the key \"frequency_hz\" is there twice");
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("nested more"));
}

// Both ends of a range are allowed, their neighbours are not.
TEST(ConfigTest, RangesIncludeBothEnds) {
  for (const ConfigKey& key : ConfigKeys()) {
    const auto* number = std::get_if<ConfigKey::Number>(&key.kind);
    if (number == nullptr) continue;
    ServiceConfig config;
    for (const uint64_t value : {number->least, number->most}) {
      EXPECT_TRUE(SetFromText(key, std::to_string(value), config)) << key.path;
      EXPECT_EQ(number->value(config), value);
    }
    for (const uint64_t value : {number->least - 1, number->most + 1}) {
      if (value == uint64_t{0} - 1) continue;  // nothing is below 0
      EXPECT_FALSE(SetFromText(key, std::to_string(value), config)) << key.path;
    }
    EXPECT_EQ(number->value(config), number->most);
  }
}

// A flag has its key's name and the same checks.
TEST(ConfigTest, FlagsAreNamedAfterKeys) {
  const auto keys = ConfigKeys();
  const auto key =
      std::ranges::find(keys, "files.max_age_seconds", &ConfigKey::path);
  ASSERT_NE(key, keys.end());
  EXPECT_EQ(FlagOf(*key), "--files-max-age-seconds");
  ServiceConfig config;
  ASSERT_TRUE(SetFromText(*key, "3600", config));
  EXPECT_EQ(config.files.max_age_seconds, 3600u);
  const auto refused = SetFromText(*key, "1 day", config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "--files-max-age-seconds: wants a whole number and not a text");
}

// Lists are lists of texts in the file and have commas in a flag.
TEST(ConfigTest, ReadsAddresses) {
  const auto config = ParseConfig(
      R"({"http": {"listen": ["unix:/run/a", "[::1]:80", ":4040"]}})", "f");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_THAT(config->http.listen,
              testing::ElementsAre("unix:/run/a", "[::1]:80", ":4040"));
  EXPECT_TRUE(
      ParseConfig(R"({"http": {"listen": []}})", "f")->http.listen.empty());
  EXPECT_THAT(ErrorOf(R"({"http": {"listen": "unix:/run/a"}})"),
              HasSubstr("http.listen: wants a list and not a text"));
  EXPECT_THAT(ErrorOf(R"({"http": {"listen": [4040]}})"),
              HasSubstr("wants a list of texts and not a whole number in it"));
  EXPECT_THAT(ErrorOf(R"({"http": {"listen": ["localhost:80"]}})"),
              HasSubstr("\"localhost:80\" is neither unix:/PATH"));
  const auto key =
      std::ranges::find(ConfigKeys(), "http.listen", &ConfigKey::path);
  ServiceConfig flags;
  ASSERT_TRUE(SetFromText(*key, "unix:/a,127.0.0.1:1", flags));
  EXPECT_THAT(flags.http.listen,
              testing::ElementsAre("unix:/a", "127.0.0.1:1"));
  ASSERT_TRUE(SetFromText(*key, "", flags));
  EXPECT_TRUE(flags.http.listen.empty());
}

// Finds "a.b" in a JSON Schema's properties.
const json* Property(const json& schema, std::string_view path) {
  const json* node = &schema;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::string name(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    const auto properties = node->find("properties");
    if (properties == node->end() || !properties->contains(name)) {
      return nullptr;
    }
    node = &(*properties)[name];
  }
  return node;
}

size_t CountKeys(const json& schema) {
  if (!schema.contains("properties")) return 1;
  EXPECT_EQ(schema["additionalProperties"], false);
  size_t keys = 0;
  for (const json& property : schema["properties"]) keys += CountKeys(property);
  return keys;
}

void ExpectSame(const ConfigKey& key, const json& property) {
  ServiceConfig defaults;
  if (const auto* number = std::get_if<ConfigKey::Number>(&key.kind)) {
    EXPECT_EQ(property["type"], "integer");
    EXPECT_EQ(property["minimum"], number->least);
    EXPECT_EQ(property["maximum"], number->most);
    EXPECT_EQ(property["default"], number->value(defaults));
  } else if (const auto* flag = std::get_if<ConfigKey::Flag>(&key.kind)) {
    EXPECT_EQ(property["type"], "boolean");
    EXPECT_EQ(property["default"], flag->value(defaults));
  } else if (const auto* choice = std::get_if<ConfigKey::Choice>(&key.kind)) {
    const auto words = choice->words();
    EXPECT_EQ(property["enum"],
              json(std::vector<std::string>(words.begin(), words.end())));
    EXPECT_EQ(property["default"], choice->value(defaults));
  } else if (const auto* list = std::get_if<ConfigKey::Addresses>(&key.kind)) {
    EXPECT_EQ(property["type"], "array");
    EXPECT_EQ(property["items"]["type"], "string");
    EXPECT_EQ(property["default"], json(list->value(defaults)));
  } else if (std::holds_alternative<ConfigKey::Targets>(key.kind)) {
    EXPECT_EQ(property["type"], "array");
    EXPECT_EQ(property["default"], json::array());
  } else if (const auto* words = std::get_if<ConfigKey::Words>(&key.kind)) {
    EXPECT_EQ(property["type"], "array");
    EXPECT_EQ(property["uniqueItems"], true);
    EXPECT_EQ(property["items"]["enum"],
              json(std::vector<std::string>(words->words.begin(),
                                            words->words.end())));
    EXPECT_EQ(property["default"], json(words->value(defaults)));
  } else {
    EXPECT_EQ(property["type"], "string");
    EXPECT_EQ(property["pattern"], "^(/.*)?$");
    EXPECT_EQ(property["maxLength"], 4095);
    EXPECT_EQ(property["default"],
              std::get<ConfigKey::Path>(key.kind).value(defaults));
  }
}

// Lists of words, each of them known and there once; empty is none.
TEST(ConfigTest, ReadsWords) {
  const auto config = ParseConfig(R"({"labels": ["tid", "unit"]})", "f.json");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->labels, (std::vector<std::string>{"tid", "unit"}));
  EXPECT_TRUE(ParseConfig(R"({"labels": []})", "f.json")->labels.empty());
  EXPECT_EQ(ErrorOf(R"({"labels": ["name"]})"),
            "f.json:1: labels: \"name\" is none of host, comm, pid, tid, "
            "cgroup, unit, container_id, pod, container_name");
  EXPECT_EQ(ErrorOf(R"({"labels": ["pid", "pid"]})"),
            "f.json:1: labels: \"pid\" is there twice");
}

// URLs alone, or objects that say more.
TEST(ConfigTest, ReadsPushTargets) {
  const auto config = ParseConfig(
      R"({"push": ["http://a/x", {"url": "https://b:1/ingest?t=1",
                                  "name": "n", "token_file": "/t",
                                  "samples_per_hour": 600}]})",
      "f.json");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->push,
            (std::vector<PushTarget>{{.url = "http://a/x"},
                                     {.url = "https://b:1/ingest?t=1",
                                      .name = "n",
                                      .token_file = "/t",
                                      .samples_per_hour = 600}}));
  EXPECT_EQ(ParsePushUrl("https://b:1/ingest?t=1")->protocol,
            PushProtocol::kPyroscope);
  EXPECT_EQ(ParsePushUrl("http://a/ingest/x")->protocol, PushProtocol::kPprof);
  const auto collector = ParsePushUrl("otlp+https://c:4318");
  EXPECT_EQ(collector->protocol, PushProtocol::kOtlp);
  EXPECT_TRUE(collector->is_https);
  EXPECT_EQ(collector->path, "/v1development/profiles");
  EXPECT_EQ(ParsePushUrl("otlp+http://c/own?x=1")->path, "/own?x=1");
  EXPECT_EQ(ParsePushUrl("http://[::1]:2")->path, "/");
  const auto database = ParsePushUrl("clickhouse+http://c/ksym_1");
  ASSERT_TRUE(database);
  EXPECT_EQ(database->protocol, PushProtocol::kClickHouse);
  EXPECT_EQ(database->port, 8123);
  EXPECT_EQ(database->path, "/?database=ksym_1");
  EXPECT_EQ(ParsePushUrl("clickhouse+https://c/d")->port, 8443);
  EXPECT_EQ(ParsePushUrl("clickhouse+https://c:1/d")->port, 1);
  EXPECT_EQ(ParsePushUrl("clickhouse+https://c/ingest")->protocol,
            PushProtocol::kClickHouse);
  EXPECT_NE(DirectoryOf({.url = "http://a/b_c"}),
            DirectoryOf({.url = "http://a/b/c"}));
  for (const char* bad :
       {"[1]", "[{}]", R"(["ftp://a/"])", R"(["http:///x"])",
        R"(["otlp://a/"])", R"(["http://user@a/"])",
        R"(["http://a:99999999999999999999/"])", R"(["http://a/ b"])",
        R"(["http://a/#b"])", R"([{"url": "http://a/", "nam": "x"}])",
        R"([{"url": "http://a/", "name": "a{b}"}])",
        R"([{"url": "http://a/", "token_file": "t"}])",
        R"([{"url": "http://a/", "samples_per_hour": "1"}])",
        R"([{"url": "http://a/", "samples_per_hour": -1}])",
        R"([{"url": "http://a/", "samples_per_hour": 0.5}])",
        R"(["http://a/", "http://a/"])"}) {
    EXPECT_THAT(ErrorOf(std::string(R"({"push": )") + bad + "}"),
                HasSubstr("f.json:1: push: "))
        << bad;
  }
}

// What names no server, or a port that no server can have, is refused before
// anything is sent there.
TEST(ConfigTest, RefusesUrlsOfNoServer) {
  for (const char* bad : {"http://h:99999999999999999999/",
                          "http://h:65536/",
                          "http://h:0/",
                          "http://h:/",
                          "http://:80/",
                          "http://h:80:80/",
                          "http://[::1/",
                          "http://[::1]x/",
                          "http://[h]/",
                          "http://::1/",
                          "http://[]/",
                          "http://h:+80/",
                          "http://h?/",
                          "http://h%20/",
                          "http://h\\/",
                          "https://h:x/",
                          "http://h_\"/",
                          "clickhouse+http://h",
                          "clickhouse+http://h/",
                          "clickhouse+http://h/a/",
                          "clickhouse+http://h/a?user=b",
                          "clickhouse+http://h/a;b",
                          "clickhouse+http://h/a.b",
                          "clickhouse+http://h/a-b",
                          "clickhouse+http://h/%61",
                          "clickhouse://h/a",
                          "otlp+clickhouse+http://h/a"}) {
    EXPECT_FALSE(ParsePushUrl(bad)) << bad;
  }
  EXPECT_FALSE(ParsePushUrl("http://" + std::string(254, 'h') + "/"));
  EXPECT_FALSE(ParsePushUrl("http://h/" + std::string(8192, 'h')));
  EXPECT_TRUE(ParsePushUrl("clickhouse+http://h/" + std::string(64, 'd')));
  EXPECT_FALSE(ParsePushUrl("clickhouse+http://h/" + std::string(65, 'd')));
  const auto whole =
      ParsePushUrl("https://" + std::string(253, 'h') + ":65535");
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->is_https);
  EXPECT_EQ(whole->port, 65535);
  EXPECT_EQ(ParsePushUrl("http://a_b.example-1")->port, 80);
  EXPECT_EQ(ParsePushUrl("https://[fe80::a]/x")->host, "fe80::a");
  EXPECT_EQ(ParsePushUrl("https://[fe80::a]/x")->port, 443);
}

// The JSON Schema has exactly the parser's keys, types, ranges and defaults.
TEST(ConfigTest, SchemaAgreesWithParser) {
  const auto text = ksym::ReadFile(
      KSYM_TEST_DATA_DIR "/../../docs/ksym-profiled.schema.json", 1 << 20);
  ASSERT_TRUE(text) << text.error().message();
  const json schema = json::parse(*text);
  EXPECT_EQ(CountKeys(schema), ConfigKeys().size());
  for (const ConfigKey& key : ConfigKeys()) {
    SCOPED_TRACE(key.path);
    const json* property = Property(schema, key.path);
    ASSERT_NE(property, nullptr);
    ExpectSame(key, *property);
  }
}

}  // namespace
}  // namespace profd
