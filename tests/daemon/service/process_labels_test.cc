// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/process_labels.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "daemon/service/labels.h"
#include "tests/daemon/labels/running_cat.h"
#include "tests/daemon/labels/state_directory.h"

namespace profd {
namespace {

const std::string kUid = "01234567-89ab-cdef-0123-456789abcdef";
const std::string kContainer(64, 'a');
const ksym::ProcessId kProcess = {.pid = 7, .start_ns = 1};

LabelThread::Settings LogsIn(const StateDirectory& state) {
  return {.directories = {.logs = state.path(), .docker = {}, .podman = {}},
          .environment = {}};
}

RawProfile ProfileOf(const ksym::ProcessId& process,
                     const std::string& cgroup) {
  RawProfile profile;
  profile.samples = {{.process = process, .comm = {}, .count = 1}};
  if (!cgroup.empty()) profile.cgroups[process] = cgroup;
  return profile;
}

// The labels of that process once it has some, or after 20 seconds none.
LabelSet LabelsOnce(ProcessLabels& labels, const ksym::ProcessId& process,
                    const std::string& cgroup) {
  for (int i = 0; i < 2000; ++i) {
    RawProfile profile = ProfileOf(process, cgroup);
    labels.Label(profile);
    const auto found = profile.labels.find(process);
    if (found != profile.labels.end()) return *found->second;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {};
}

// A pod of systemd's form of the name and of kubelet's own is the same one;
// processes share what is known of it.
TEST(ProcessLabelsTest, NamesPods) {
  const StateDirectory state;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kContainer);
  ProcessLabels labels(LogsIn(state));
  const std::string cgroup =
      "/kubepods.slice/kubepods-pod" +
      std::string("01234567_89ab_cdef_0123_456789abcdef") +
      ".slice/cri-containerd-" + kContainer + ".scope";
  labels.NoteSample(kProcess, cgroup);
  const LabelSet found = LabelsOnce(labels, kProcess, cgroup);
  EXPECT_EQ(FindLabel(found, kPodLabel), "web-0");
  EXPECT_EQ(FindLabel(found, kNamespaceLabel), "shop");
  EXPECT_EQ(FindLabel(found, kPodContainerLabel), "nginx");
  const ksym::ProcessId other = {.pid = 8, .start_ns = 1};
  RawProfile profile =
      ProfileOf(other, "/kubepods/pod" + kUid + "/" + kContainer);
  profile.samples.push_back({.process = kProcess, .comm = {}, .count = 1});
  profile.cgroups[kProcess] = cgroup;
  labels.Label(profile);
  ASSERT_EQ(profile.labels.size(), 2u);
  EXPECT_EQ(profile.labels.at(other), profile.labels.at(kProcess));
}

// What is in no container, or in one that anybody could have named so, is not
// asked for.
TEST(ProcessLabelsTest, NamesNothingElse) {
  const StateDirectory state;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kContainer);
  ProcessLabels labels(LogsIn(state));
  const std::string pod = "/kubepods/pod" + kUid + "/" + kContainer;
  EXPECT_FALSE(LabelsOnce(labels, kProcess, pod).empty());
  for (const std::string& cgroup :
       {std::string(), std::string("/"), "/user.slice/user@7.service" + pod}) {
    RawProfile profile = ProfileOf({.pid = 8, .start_ns = 1}, cgroup);
    labels.Label(profile);
    EXPECT_TRUE(profile.labels.empty()) << cgroup;
  }
  uint64_t containers = 0;
  for (const uint64_t some : labels.statistics().containers) {
    containers += some;
  }
  EXPECT_EQ(containers, 1u);
}

// Another directory from one moment on.
TEST(ProcessLabelsTest, IsConfiguredAnew) {
  const StateDirectory state;
  const StateDirectory other;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kContainer);
  other.MakeContainer("bank", "vault", kUid, "safe", kContainer);
  ProcessLabels labels(LogsIn(state));
  const std::string pod = "/kubepods/pod" + kUid + "/" + kContainer;
  EXPECT_EQ(FindLabel(LabelsOnce(labels, kProcess, pod), kPodLabel), "web-0");
  labels.Configure(LogsIn(other));
  EXPECT_EQ(FindLabel(LabelsOnce(labels, kProcess, pod), kPodLabel), "vault");
  labels.Configure({});
  RawProfile profile = ProfileOf(kProcess, pod);
  labels.Label(profile);
  EXPECT_TRUE(profile.labels.empty());
}

// A process that says as much of itself as it may.
std::string MuchOf(char mark) {
  std::string list;
  for (size_t i = 0; i < kMaxEnvironmentLabels; ++i) {
    std::string key = std::to_string(i);
    key.resize(kMaxEnvironmentKeyBytes, mark);
    list += key + "=" + std::string(kMaxEnvironmentValueBytes, mark) + ",";
  }
  return "OTEL_RESOURCE_ATTRIBUTES=" + list;
}

// Labels that all processes together say of themselves are bounded; processes
// without room for theirs are counted.
TEST(ProcessLabelsTest, BoundsTheLabelsOfAll) {
  const RunningCat cat({MuchOf('a')});
  ProcessLabels labels(
      {.directories = {}, .environment = {.resource_attributes = true}});
  const LabelSet set = LabelsOnce(labels, cat.process(), {});
  ASSERT_EQ(set.size(), kMaxEnvironmentLabels);
  const size_t room = LabelThread::kMaxLabelBytes / BytesOf(set);
  ASSERT_LT(room, LabelThread::kMaxProcessesWaiting);
  // The clock's ticks tell processes with one pid from each other: those that
  // differ by less are all this one.
  const auto process = [&](size_t i) {
    return ksym::ProcessId{.pid = cat.process().pid,
                           .start_ns = cat.process().start_ns + i};
  };
  RawProfile profile;
  for (size_t i = 0; i <= room; ++i) {
    labels.NoteSample(process(i), {});
    profile.samples.push_back({.process = process(i), .comm = {}, .count = 1});
  }
  const auto no_room = [&] {
    return labels.statistics()
        .environments[static_cast<size_t>(EnvironmentResult::kNoRoom)];
  };
  for (int i = 0; i < 2000 && profile.labels.size() + no_room() <= room; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    profile.labels.clear();
    labels.Label(profile);
  }
  EXPECT_EQ(profile.labels.size(), room);
  EXPECT_EQ(no_room(), 1u);
}

// The configuration's words say what is looked for and where.
TEST(ProcessLabelsTest, SettingsOfWords) {
  ServiceConfig config;
  LabelThread::Settings settings = LabelSettings(config);
  EXPECT_EQ(settings.directories.logs, "/var/log");
  EXPECT_EQ(settings.directories.docker, "/var/lib/docker/containers");
  EXPECT_FALSE(settings.environment.any());
  config.labels = {"container_name"};
  config.environment_labels = {"OTEL_SERVICE_NAME"};
  settings = LabelSettings(config);
  EXPECT_EQ(settings.directories.logs, "");
  EXPECT_NE(settings.directories.podman, "");
  EXPECT_TRUE(settings.environment.service_name);
  EXPECT_FALSE(settings.environment.resource_attributes);
  config.labels = {};
  EXPECT_EQ(LabelSettings(config).directories, ContainerFiles::Directories{});
}

}  // namespace
}  // namespace profd
