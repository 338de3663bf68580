// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/container_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/labels/container_files.h"
#include "tests/daemon/labels/state_directory.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Clock = ContainerFiles::Clock;

const std::string kId(64, 'a');
const std::string kOtherId(64, 'b');

std::string DockerState(const std::string& id, const std::string& name) {
  return R"({"StreamConfig":{},"State":{"Name":"/no","Pid":7},"ID":")" + id +
         R"(","Config":{"Env":["Name=/no"],"Labels":{"ID":"no"}},"Name":")" +
         name + R"(","Driver":"overlay2"})";
}

std::string PodmanState(const std::string& id, const std::string& name) {
  return R"([{"id":")" + id + R"(","names":[")" + name +
         R"(","again"],"image":"i","metadata":"{\"name\":\"no\"}","created":)"
         R"("2026","flags":{"id":"no","names":["no"]}}])";
}

// Docker's name is the one at the top, of the container that was asked for.
TEST(ContainerStateTest, Docker) {
  EXPECT_EQ(ParseDockerName(DockerState(kId, "/web_1.a-b"), kId), "web_1.a-b");
  EXPECT_EQ(ParseDockerName(DockerState(kId, "web"), kId), "web");
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"),
        std::string("null"), DockerState(kOtherId, "/web"),
        DockerState(kId, ""), DockerState(kId, "/"), DockerState(kId, "//a"),
        DockerState(kId, "/a\\u001bb"), DockerState(kId, "/-a"),
        DockerState(kId, "/" + std::string(256, 'a')),
        DockerState(kId, "/web") + "x", "[" + DockerState(kId, "/web") + "]",
        DockerState(kId, "/web\",\"Name\":\"/vault"),
        DockerState(kId, "/web").substr(0, 120)}) {
    EXPECT_FALSE(ParseDockerName(text, kId)) << text;
  }
}

// Lists in lists end at a bound, and one level below it do not.
TEST(ContainerStateTest, Levels) {
  const auto nested = [](size_t levels) {
    return R"({"ID":")" + kId + R"(","a":)" + std::string(levels - 1, '[') +
           std::string(levels - 1, ']') + R"(,"Name":"/web"})";
  };
  EXPECT_EQ(ParseDockerName(nested(kMaxStateLevels), kId), "web");
  EXPECT_FALSE(ParseDockerName(nested(kMaxStateLevels + 1), kId));
}

// Podman's are in a list; an id that is there twice has no name.
TEST(ContainerStateTest, Podman) {
  const auto parse = [](const std::string& text) {
    return ParsePodmanNames(text).value_or(
        ContainerNamesById{{"failed", "failed"}});
  };
  EXPECT_THAT(parse(PodmanState(kId, "web")), ElementsAre(Pair(kId, "web")));
  EXPECT_THAT(parse("[]"), IsEmpty());
  EXPECT_THAT(parse(R"([{"id":"a"},{"names":["b"]},{"id":"c","names":[]}])"),
              IsEmpty());
  EXPECT_THAT(parse(R"([{"id":"a","names":["b c"]}])"), IsEmpty());
  EXPECT_THAT(parse(R"([{"id":"a","names":["b"]},{"id":"c","names":["d"]},)"
                    R"({"id":"a","names":["e"]}])"),
              ElementsAre(Pair("c", "d")));
  for (const char* text : {"", "[", "[{]", R"([{"id":"a","id":"b"}])",
                           R"({"id":"a","names":["b"]})", "[] []"}) {
    EXPECT_THAT(parse(text), ElementsAre(Pair("failed", "failed"))) << text;
  }
}

ContainerNames FindEngine(ContainerFiles& files, const std::string& id,
                          Clock::time_point now = Clock::now()) {
  const ContainerKey key = {.pod_uid = {}, .container_id = id};
  return files.Find(std::span(&key, 1), now).front();
}

ContainerFiles::Directories EngineDirectories(const StateDirectory& state) {
  return {.logs = {},
          .docker = state.path() + "/docker",
          .podman = state.path() + "/podman"};
}

// The files of both engines are read; one that is replaced is read again.
TEST(ContainerFilesTest, FindsEngines) {
  const StateDirectory state;
  ContainerFiles files(EngineDirectories(state));
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kNotFound);
  state.Write("docker/" + kId + "/config.v2.json", DockerState(kId, "/web"));
  state.Write("podman/containers.json", PodmanState(kOtherId, "db"));
  auto now = Clock::now() + ContainerFiles::kPodmanPeriod;
  const LabelSet web = {{.key = "container.name", .value = "web"}};
  EXPECT_EQ(FindEngine(files, kId, now).labels, web);
  EXPECT_EQ(FindEngine(files, kOtherId, now).labels.front().value, "db");
  state.Write("docker/" + kId + "/config.v2.json", DockerState(kId, "/www"));
  EXPECT_EQ(FindEngine(files, kId, now).labels.front().value, "www");
  // Podman's list is not read again so soon.
  state.Write("podman/containers.json", PodmanState(kOtherId, "store"));
  EXPECT_EQ(FindEngine(files, kOtherId, now).labels.front().value, "db");
  now += ContainerFiles::kPodmanPeriod;
  EXPECT_EQ(FindEngine(files, kOtherId, now).labels.front().value, "store");
  // Containers that do not outlive a boot have a list of their own.
  state.Remove("podman/containers.json");
  state.Write("podman/volatile-containers.json", PodmanState(kOtherId, "tmp"));
  now += ContainerFiles::kPodmanPeriod;
  EXPECT_EQ(FindEngine(files, kOtherId, now).labels.front().value, "tmp");
  // Nobody has it any more.
  state.Remove("docker/" + kId);
  EXPECT_EQ(FindEngine(files, kId, now).result, NameResult::kNotFound);
}

// A file is refused that is too large, is another container's, or that others
// could have written, or that a link leads to.
TEST(ContainerFilesTest, RefusesOtherFiles) {
  const StateDirectory state;
  ContainerFiles files(EngineDirectories(state));
  const std::string path = "docker/" + kId + "/config.v2.json";
  state.Write(path, DockerState(kOtherId, "/web"));
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kUnreadable);
  const std::string good = DockerState(kId, "/web");
  state.Write(
      path,
      good + std::string(ContainerFiles::kMaxDockerBytes - good.size(), ' '));
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kFound);
  state.Write(
      path, good + std::string(
                       ContainerFiles::kMaxDockerBytes - good.size() + 1, ' '));
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kTooLarge);
  state.Write(path, good);
  state.LetAllWrite(path);
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kNotTrusted);
  state.Remove(path);
  state.Write("elsewhere/config.v2.json", good);
  state.MakeLink("../../elsewhere/config.v2.json", path);
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kNotFound);
  state.Remove("docker/" + kId);
  state.MakeLink("../elsewhere", "docker/" + kId);
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kNotFound);
  state.Remove("docker");
  state.Write("docker", "");
  EXPECT_EQ(FindEngine(files, kId).result, NameResult::kNotFound);
}

// Two engines that both claim a container are believed neither.
TEST(ContainerFilesTest, EnginesContradict) {
  const StateDirectory state;
  ContainerFiles files(EngineDirectories(state));
  state.Write("docker/" + kId + "/config.v2.json", DockerState(kId, "/web"));
  state.Write("podman/containers.json", PodmanState(kId, "web"));
  const ContainerNames names = FindEngine(files, kId);
  EXPECT_EQ(names.result, NameResult::kContradictory);
  EXPECT_THAT(names.labels, IsEmpty());
}

}  // namespace
}  // namespace profd
