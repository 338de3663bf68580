// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/pod_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/daemon/labels/state_directory.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kUid = "01234567-89ab-cdef-0123-456789abcdef";
const std::string kOtherUid = "fedcba98-89ab-cdef-0123-456789abcdef";
const std::string kMirrorUid(32, 'c');
const std::string kId(64, 'a');
const std::string kOtherId(64, 'b');

ContainerNames FindOne(const StateDirectory& state, const std::string& uid,
                       const std::string& id) {
  const ContainerKey key = {.pod_uid = uid, .container_id = id};
  return FindPodNames(state.path(), std::span(&key, 1)).front();
}

LabelSet PodLabels(const std::string& name_space, const std::string& pod) {
  return {{.key = "k8s.namespace.name", .value = name_space},
          {.key = "k8s.pod.name", .value = pod}};
}

LabelSet AllLabels(const std::string& name_space, const std::string& pod,
                   const std::string& container) {
  LabelSet labels = PodLabels(name_space, pod);
  labels.insert(labels.begin(),
                {.key = "k8s.container.name", .value = container});
  return labels;
}

// A directory's name has three parts, of characters and lengths that Kubernetes
// accepts.
TEST(PodLogsTest, ParsesDirectories) {
  EXPECT_EQ(ParsePodDirectory("kube-system_etcd-a.b_" + kUid),
            (PodDirectory{"kube-system", "etcd-a.b", kUid}));
  EXPECT_EQ(ParsePodDirectory("d_p_" + kMirrorUid),
            (PodDirectory{"d", "p", kMirrorUid}));
  const std::string longest =
      std::string(63, 'n') + "_" + std::string(253, 'p') + "_" + kUid;
  EXPECT_TRUE(ParsePodDirectory(longest));
  for (const std::string& name :
       {std::string(), "_" + kUid, std::string("d_p"), std::string("d_p_"),
        "d_p_" + kUid + "0", "d_p_" + kUid.substr(1), "d_p_x_" + kUid,
        "D_p_" + kUid, "d_p\n_" + kUid, "d_-p_" + kUid, "d_p._" + kUid,
        "d.e_p_" + kUid, "n" + longest,
        "d_" + std::string(254, 'p') + "_" + kUid}) {
    EXPECT_FALSE(ParsePodDirectory(name)) << name;
  }
}

// A link's name ends with the whole id; what the file system cut off is none.
TEST(PodLogsTest, ParsesLinks) {
  EXPECT_EQ(ParseContainerLink("web-0.a_shop_nginx-" + kId + ".log"),
            (ContainerLink{"shop", "web-0.a", "nginx", kId}));
  for (const std::string& name :
       {std::string(), kId + ".log", "-" + kId + ".log", "p_n_c-" + kId,
        "p_n_c-" + kId.substr(1) + ".log", "p_n_c" + kId + ".log",
        "p_c-" + kId + ".log", "p_n_c_d-" + kId + ".log",
        "p_n_c-A" + kId.substr(1) + ".log", "p_n_-" + kId + ".log"}) {
    EXPECT_FALSE(ParseContainerLink(name)) << name;
  }
}

// What a link points to is looked at as a text, from its end.
TEST(PodLogsTest, ParsesTargets) {
  for (const std::string prefix : {"/var/log/pods/", "", "../pods/"}) {
    const std::string target = prefix + "n_p_" + kUid + "/c/12.log";
    const auto log = ParseContainerLog(target);
    ASSERT_TRUE(log) << prefix;
    EXPECT_EQ(log->directory, (PodDirectory{"n", "p", kUid}));
    EXPECT_EQ(log->container, "c");
  }
  for (const std::string& target :
       {std::string(), std::string("/"), std::string("/0.log"),
        "n_p_" + kUid + "/c/.log", "n_p_" + kUid + "/c/x.log",
        "n_p_" + kUid + "/c/0.txt", "n_p_" + kUid + "/0.log",
        "n_p_" + kUid + "/c_d/0.log", "n_p_" + kUid + "//0.log",
        "p_" + kUid + "/c/0.log"}) {
    EXPECT_FALSE(ParseContainerLog(target)) << target;
  }
}

// Pods and containers are found among others by uid and id; so are pods that
// the node's own files describe.
TEST(PodLogsTest, FindsPodsAndContainers) {
  const StateDirectory state;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kId);
  state.MakeContainer("shop", "web-1", kOtherUid, "nginx", kOtherId);
  state.MakeContainer("kube-system", "etcd-a", kMirrorUid, "etcd",
                      std::string(64, 'd'));
  const std::vector<ContainerKey> wanted = {
      {.pod_uid = kOtherUid, .container_id = kOtherId},
      {.pod_uid = kUid, .container_id = kId},
      {.pod_uid = kMirrorUid, .container_id = std::string(64, 'd')}};
  const auto names = FindPodNames(state.path(), wanted);
  ASSERT_EQ(names.size(), 3u);
  for (const ContainerNames& each : names) {
    EXPECT_EQ(each.result, NameResult::kFound);
  }
  EXPECT_EQ(names[0].labels, AllLabels("shop", "web-1", "nginx"));
  EXPECT_EQ(names[1].labels, AllLabels("shop", "web-0", "nginx"));
  EXPECT_EQ(names[2].labels, AllLabels("kube-system", "etcd-a", "etcd"));
}

// A pod whose container has no link, as its sandbox has none, has its own
// names; a pod without a directory has none, and nothing breaks without
// directories.
TEST(PodLogsTest, FindsWhatThereIs) {
  const StateDirectory state;
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kNotFound);
  state.MakePod("shop", "web-0", kUid);
  for (const std::string& id : {kId, std::string()}) {
    const ContainerNames names = FindOne(state, kUid, id);
    EXPECT_EQ(names.result, NameResult::kPodOnly);
    EXPECT_EQ(names.labels, PodLabels("shop", "web-0"));
  }
  const ContainerNames other = FindOne(state, kOtherUid, kId);
  EXPECT_EQ(other.result, NameResult::kNotFound);
  EXPECT_THAT(other.labels, IsEmpty());
}

// A pod that ended and one with its name and another uid are two pods.
TEST(PodLogsTest, PodsAreReplaced) {
  const StateDirectory state;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kId);
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kFound);
  state.Remove("pods");
  state.Remove("containers");
  state.MakeContainer("shop", "web-0", kOtherUid, "nginx", kOtherId);
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kNotFound);
  EXPECT_EQ(FindOne(state, kOtherUid, kOtherId).labels,
            AllLabels("shop", "web-0", "nginx"));
}

// Where entries contradict each other there are no names at all.
TEST(PodLogsTest, ContradictionsGiveNoName) {
  const auto expect_contradiction = [](const StateDirectory& state) {
    const ContainerNames names = FindOne(state, kUid, kId);
    EXPECT_EQ(names.result, NameResult::kContradictory);
    EXPECT_THAT(names.labels, IsEmpty());
  };
  {
    SCOPED_TRACE("two pods with one uid");
    const StateDirectory state;
    state.MakeContainer("shop", "web-0", kUid, "nginx", kId);
    state.MakePod("bank", "vault", kUid);
    expect_contradiction(state);
  }
  {
    SCOPED_TRACE("a name that kubelet does not make");
    const StateDirectory state;
    state.MakeDirectory("pods/shop_we\tb_" + kUid);
    expect_contradiction(state);
  }
  {
    SCOPED_TRACE("two links with one id");
    const StateDirectory state;
    state.MakeContainer("shop", "web-0", kUid, "nginx", kId);
    state.MakeContainer("shop", "web-0", kUid, "sidecar", kId);
    expect_contradiction(state);
  }
  const std::string target = "/var/log/pods/shop_web-0_" + kUid + "/nginx";
  const std::string link = "containers/web-0_shop_nginx-" + kId + ".log";
  const auto lies = [&](const std::string& to, const std::string& name) {
    const StateDirectory state;
    state.MakeDirectory("pods/shop_web-0_" + kUid + "/nginx");
    state.MakeDirectory("pods/bank_vault_" + kOtherUid + "/nginx");
    state.MakeLink(to, name);
    expect_contradiction(state);
  };
  {
    SCOPED_TRACE("a link that leads to another pod");
    lies("/var/log/pods/bank_vault_" + kOtherUid + "/nginx/0.log", link);
    lies("/var/log/pods/bank_vault_" + kUid + "/nginx/0.log", link);
  }
  {
    SCOPED_TRACE("a link that is called as another pod's");
    lies(target + "/0.log", "containers/vault_bank_nginx-" + kId + ".log");
    lies(target + "/0.log", "containers/web-0_shop_other-" + kId + ".log");
  }
  {
    SCOPED_TRACE("a link that leads elsewhere");
    lies("/etc/passwd", link);
    lies(target, link);
    lies("../../" + std::string(4200, 'x').substr(0, 200), link);
  }
}

// Files and other things in the place of a directory or a link are passed over,
// as if nothing were there.
TEST(PodLogsTest, PassesOverOtherFiles) {
  const StateDirectory state;
  state.Write("pods/shop_web-0_" + kUid, "");
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kNotFound);
  state.Remove("pods/shop_web-0_" + kUid);
  state.MakeDirectory("elsewhere");
  state.MakeLink("../elsewhere", "pods/shop_web-0_" + kUid);
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kNotFound);
  state.Remove("pods/shop_web-0_" + kUid);
  state.MakePod("shop", "web-0", kUid);
  state.Write("containers/web-0_shop_nginx-" + kId + ".log", "");
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kPodOnly);
  // A link that is right, to a log whose container has no directory.
  state.Remove("containers");
  state.MakeContainer("shop", "web-0", kUid, "nginx", kId);
  state.Remove("pods/shop_web-0_" + kUid + "/nginx");
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kPodOnly);
  state.Remove("containers");
  state.Write("containers", "");
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kPodOnly);
  state.Remove("pods");
  state.Write("pods", "");
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kNotFound);
}

// A directory that others may write to tells nothing.
TEST(PodLogsTest, DoesNotBelieveOthers) {
  const StateDirectory state;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kId);
  state.LetAllWrite("pods/shop_web-0_" + kUid + "/nginx");
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kPodOnly);
  state.LetAllWrite("pods/shop_web-0_" + kUid);
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kNotFound);
  state.LetAllWrite("pods");
  EXPECT_EQ(FindOne(state, kUid, kId).result, NameResult::kNotTrusted);
}

// Links to logs that cannot be looked at leave the pod its name, and say why
// the container has none.
TEST(PodLogsTest, LinksThatCannotBeLookedAt) {
  const StateDirectory state;
  state.MakeContainer("shop", "web-0", kUid, "nginx", kId);
  state.LetAllWrite("containers");
  const ContainerNames names = FindOne(state, kUid, kId);
  EXPECT_EQ(names.result, NameResult::kNotTrusted);
  EXPECT_EQ(FindLabel(names.labels, kPodLabel), "web-0");
  EXPECT_EQ(FindLabel(names.labels, kPodContainerLabel), "");
}

// Among 10,000 entries the right one is found.
TEST(PodLogsTest, ManyEntries) {
  const StateDirectory state;
  state.MakeDirectory("pods");
  for (int i = 0; i < 10'000; ++i) {
    const std::string number = std::to_string(100'000 + i);
    state.MakePod("shop", "web-" + number, "0" + number + kUid.substr(7));
  }
  state.MakeContainer("shop", "web", kUid, "nginx", kId);
  EXPECT_EQ(FindOne(state, kUid, kId).labels,
            AllLabels("shop", "web", "nginx"));
}

}  // namespace
}  // namespace profd
