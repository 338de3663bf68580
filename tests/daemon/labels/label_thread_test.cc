// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/label_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "tests/daemon/labels/running_cat.h"
#include "tests/daemon/labels/state_directory.h"

namespace profd {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const std::string kUid = "01234567-89ab-cdef-0123-456789abcdef";
const std::string kContainerId(64, 'a');
const ContainerKey kKey = {.pod_uid = kUid, .container_id = kContainerId};

LabelThread::Settings SettingsFor(const StateDirectory& state) {
  return {.directories = {.logs = state.path(), .docker = {}, .podman = {}},
          .environment = {}};
}

// Asks until that is so, for 20 seconds.
bool Becomes(const std::function<bool()>& what) {
  for (int i = 0; i < 2000; ++i) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::string_view ValueOf(const LabelThread::Answers& answers,
                         std::string_view key) {
  if (answers.containers.empty()) return {};
  return FindLabel(answers.containers.back().second, key);
}

// A container that is there is answered; one that comes later is, without
// another question; what does not change is answered once.
TEST(LabelThreadTest, AnswersWhenThereIsSomething) {
  const StateDirectory state;
  LabelThread thread(SettingsFor(state));
  thread.Ask(kKey);
  const auto is_counted = [&](NameResult result) {
    return thread.statistics().containers[static_cast<size_t>(result)] == 1;
  };
  EXPECT_TRUE(Becomes([&] { return is_counted(NameResult::kNotFound); }));
  EXPECT_THAT(thread.Take().containers, IsEmpty());
  state.MakePod("shop", "web-0", kUid);
  LabelThread::Answers answers;
  EXPECT_TRUE(Becomes([&] {
    answers = thread.Take();
    return !answers.containers.empty();
  }));
  EXPECT_EQ(ValueOf(answers, "k8s.pod.name"), "web-0");
  EXPECT_EQ(ValueOf(answers, "k8s.container.name"), "");
  state.MakeContainer("shop", "web-0", kUid, "nginx", kContainerId);
  EXPECT_TRUE(Becomes([&] {
    answers = thread.Take();
    return !answers.containers.empty();
  }));
  EXPECT_EQ(ValueOf(answers, "k8s.container.name"), "nginx");
  EXPECT_TRUE(Becomes([&] { return is_counted(NameResult::kFound); }));
}

// What is forgotten is not looked for any more, and can be asked for again.
TEST(LabelThreadTest, ForgetsAndIsConfiguredAnew) {
  const StateDirectory state;
  const StateDirectory other;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kContainerId);
  other.MakeContainer("bank", "vault", kUid, "safe", kContainerId);
  LabelThread thread(SettingsFor(state));
  LabelThread::Answers answers;
  const auto is_answered = [&] {
    answers = thread.Take();
    return !answers.containers.empty();
  };
  thread.Ask(kKey);
  ASSERT_TRUE(Becomes(is_answered));
  EXPECT_EQ(ValueOf(answers, "k8s.pod.name"), "web-0");
  thread.Forget(kKey);
  thread.Ask(kKey);
  ASSERT_TRUE(Becomes(is_answered));
  thread.Configure(SettingsFor(other));
  ASSERT_TRUE(Becomes(is_answered));
  EXPECT_EQ(ValueOf(answers, "k8s.pod.name"), "vault");
}

// What was found with other settings, and not taken yet, is not answered: a
// name from a directory that is not looked at any more, the environment's that
// is not to be read any more.
TEST(LabelThreadTest, AnswersNothingOfOtherSettings) {
  const StateDirectory state;
  const RunningCat cat({"OTEL_SERVICE_NAME=shop"});
  state.MakeContainer("shop", "web-0", kUid, "nginx", kContainerId);
  LabelThread::Settings settings = SettingsFor(state);
  settings.environment.service_name = true;
  LabelThread thread(settings);
  thread.Ask(kKey);
  thread.Ask(cat.process());
  ASSERT_TRUE(Becomes([&] {
    const LabelStatistics found = thread.statistics();
    return found.containers[static_cast<size_t>(NameResult::kFound)] == 1 &&
           found.environments[static_cast<size_t>(EnvironmentResult::kRead)] ==
               1;
  }));
  thread.Configure({});
  ASSERT_TRUE(Becomes([&] {
    return thread.statistics()
               .containers[static_cast<size_t>(NameResult::kNotFound)] == 1;
  }));
  const LabelThread::Answers answers = thread.Take();
  EXPECT_THAT(answers.containers, IsEmpty());
  EXPECT_THAT(answers.environments, IsEmpty());
}

// The same names are answered again after settings that find the same.
TEST(LabelThreadTest, AnswersAgainWithNewSettings) {
  const StateDirectory state;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kContainerId);
  LabelThread thread(SettingsFor(state));
  LabelThread::Answers answers;
  const auto is_answered = [&] {
    answers = thread.Take();
    return !answers.containers.empty();
  };
  thread.Ask(kKey);
  ASSERT_TRUE(Becomes(is_answered));
  thread.Configure(SettingsFor(state));
  ASSERT_TRUE(Becomes(is_answered));
  EXPECT_EQ(ValueOf(answers, "k8s.pod.name"), "web-0");
}

// There is room for so many containers, and what is beyond them is counted.
TEST(LabelThreadTest, HasRoomForSoMany) {
  const StateDirectory state;
  LabelThread thread(SettingsFor(state));
  for (size_t i = 0; i < LabelThread::kMaxContainers; ++i) {
    thread.Ask({.pod_uid = kUid, .container_id = std::to_string(i)});
  }
  EXPECT_EQ(thread.statistics().containers_without_room, 0u);
  thread.Ask(kKey);
  EXPECT_EQ(thread.statistics().containers_without_room, 1u);
  thread.Forget({.pod_uid = kUid, .container_id = "0"});
  thread.Ask(kKey);
  EXPECT_EQ(thread.statistics().containers_without_room, 1u);
}

// Processes that have ended are counted, and their number is bounded.
TEST(LabelThreadTest, CountsEnvironments) {
  const StateDirectory state;
  LabelThread::Settings settings = SettingsFor(state);
  settings.environment.service_name = true;
  LabelThread thread(settings);
  thread.Ask(ksym::ProcessId{.pid = 0x7fffffff, .start_ns = 1});
  EXPECT_TRUE(Becomes([&] {
    return thread.statistics()
               .environments[static_cast<size_t>(EnvironmentResult::kGone)] ==
           1;
  }));
  EXPECT_THAT(thread.Take().environments, IsEmpty());
}

}  // namespace
}  // namespace profd
