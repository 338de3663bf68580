// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/cgroup_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const std::string kId(64, 'a');

// The outermost unit is the one that systemd started; slices are none.
TEST(CgroupPathTest, Units) {
  EXPECT_EQ(ParseCgroupPath("/system.slice/nginx.service").unit,
            "nginx.service");
  EXPECT_EQ(ParseCgroupPath("/user.slice/user-1000.slice/user@1000.service/"
                            "app.slice/editor.service")
                .unit,
            "user@1000.service");
  EXPECT_EQ(ParseCgroupPath("/init.scope").unit, "init.scope");
  EXPECT_EQ(ParseCgroupPath("/system.slice/_cpu.service/sub").unit,
            "cpu.service");
  for (const char* path : {"", "/", "/system.slice", "/a/.service", "//"}) {
    EXPECT_EQ(ParseCgroupPath(path).unit, "") << path;
  }
}

// As each runtime writes it; the innermost one of containers in containers.
TEST(CgroupPathTest, Containers) {
  const std::string inner(64, 'b');
  for (const std::string& path :
       {"/docker/" + kId, "/system.slice/docker-" + kId + ".scope",
        "/kubepods/burstable/pod01234567-89ab/" + kId,
        "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kId + ".scope",
        "/machine.slice/libpod-" + kId + ".scope/container",
        "/system.slice/x.service/kubepods-besteffort.slice:crio:" + kId,
        "/docker/" + inner + "/docker/" + kId}) {
    EXPECT_EQ(ParseCgroupPath(path).container_id, kId) << path;
  }
  EXPECT_EQ(ParseCgroupPath("/ecs/00112233445566778899aabbccddeeff-1234567890")
                .container_id,
            "00112233445566778899aabbccddeeff-1234567890");
  EXPECT_EQ(ParseCgroupPath("/lxc.payload.web").container_id, "web");
  for (const std::string& path :
       {"/machine.slice/libpod-conmon-" + kId + ".scope",
        "/docker/" + kId.substr(1), "/docker/" + kId + "a",
        "/docker/A" + kId.substr(1), std::string("/system.slice/a-b.scope")}) {
    EXPECT_EQ(ParseCgroupPath(path).container_id, "") << path;
  }
}

// As kubelet writes it, with either of its drivers; names that only look so
// are none.
TEST(CgroupPathTest, Pods) {
  const std::string_view uid = "0123abcd-89ab-cdef-0123-456789abcdef";
  EXPECT_EQ(
      ParseCgroupPath("/kubepods/burstable/pod" + std::string(uid) + "/" + kId)
          .pod_uid,
      uid);
  EXPECT_EQ(ParseCgroupPath("/kubepods.slice/kubepods-besteffort.slice/"
                            "kubepods-besteffort-pod0123abcd_89ab_cdef_0123_"
                            "456789abcdef.slice/cri-containerd-" +
                            kId + ".scope")
                .pod_uid,
            "0123abcd_89ab_cdef_0123_456789abcdef");
  EXPECT_EQ(ParseCgroupPath("/kubepods/pod0123456789abcdef0123456789abcdef/x")
                .pod_uid,
            "0123456789abcdef0123456789abcdef");
  for (const char* path :
       {"/", "/podman.slice", "/pod1/x", "/system.slice/podcast.service",
        "/kubepods/podXYZ3abcd-89ab-cdef-0123-456789abcdef", "/-.slice"}) {
    EXPECT_EQ(ParseCgroupPath(path).pod_uid, "") << path;
  }
}

// Those that are wanted and there.
TEST(CgroupPathTest, Labels) {
  const std::string path = "/system.slice/docker-" + kId + ".scope";
  EXPECT_THAT(CgroupLabels(path, {}),
              ElementsAre(Pair("cgroup", path),
                          Pair("unit", "docker-" + kId + ".scope"),
                          Pair("container_id", kId)));
  EXPECT_THAT(CgroupLabels(path, {.cgroup = false, .unit = false}),
              ElementsAre(Pair("container_id", kId)));
  EXPECT_THAT(CgroupLabels("/", {}), ElementsAre(Pair("cgroup", "/")));
  EXPECT_THAT(CgroupLabels("", {}), IsEmpty());
}

const std::string kUid = "01234567-89ab-cdef-0123-456789abcdef";
const std::string kUidOfSlice = "01234567_89ab_cdef_0123_456789abcdef";

// The drivers of kubelet, of both versions of cgroups, and the engines' own
// containers.
TEST(CgroupOwnerTest, OfRoot) {
  const std::string slices = "/kubepods.slice/kubepods-burstable.slice/";
  for (const std::string& path :
       {slices + "kubepods-burstable-pod" + kUidOfSlice +
            ".slice/cri-containerd-" + kId + ".scope",
        slices + "kubepods-burstable-pod" + kUidOfSlice + ".slice/crio-" + kId +
            ".scope/container",
        "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" +
            kUidOfSlice + ".slice/cri-containerd-" + kId + ".scope",
        "/kubepods/besteffort/pod" + kUid + "/" + kId,
        "/kubepods/pod" + kUid + "/" + kId + "/docker/" + std::string(64, 'b'),
        "/kubepods/pod" + kUid + "/" + kId + "/kubepods/pod" +
            std::string(32, 'd')}) {
    const CgroupOwner owner = OwnerInCgroupPath(path);
    EXPECT_TRUE(owner.pod_uid == kUid || owner.pod_uid == kUidOfSlice) << path;
    EXPECT_EQ(owner.container_id, kId) << path;
  }
  const std::string of_mirror = "/kubepods/pod" + std::string(32, 'c');
  const CgroupOwner mirror = OwnerInCgroupPath(of_mirror);
  EXPECT_EQ(mirror.pod_uid, std::string(32, 'c'));
  EXPECT_EQ(mirror.container_id, "");
  for (const std::string& path :
       {"/docker/" + kId, "/system.slice/docker-" + kId + ".scope/init.scope",
        "/machine.slice/libpod-" + kId + ".scope/container",
        "/libpod_parent/libpod-" + kId}) {
    EXPECT_EQ(OwnerInCgroupPath(path).container_id, kId) << path;
    EXPECT_EQ(OwnerInCgroupPath(path).pod_uid, "") << path;
  }
}

// A uid has hyphens, whichever driver wrote the path.
TEST(CgroupPathTest, PodUid) {
  EXPECT_EQ(PodUidOf("/kubepods/kubepods-pod" + kUidOfSlice + ".slice/x"),
            kUid);
  EXPECT_EQ(PodUidOf("/kubepods/pod" + kUid), kUid);
  EXPECT_EQ(PodUidOf("/system.slice/x.service"), "");
}

// What is below a service, a scope or a user's slice can have any name, and
// what is in another container is not that.
TEST(CgroupOwnerTest, OfOthers) {
  const std::string pod = "/kubepods/pod" + kUid + "/" + kId;
  for (const std::string& path :
       {std::string(), std::string("/"),
        "/user.slice/user-1000.slice/user@1000.service" + pod,
        "/user.slice" + pod, "/system.slice/x.service" + pod,
        "/init.scope" + pod, "/system.slice/x.service/docker/" + kId,
        "/docker/" + std::string(64, 'b') + "/docker/" + kId,
        std::string("/lxc.payload.web"),
        "/machine.slice/libpod-conmon-" + kId + ".scope",
        std::string("/ecs/00112233445566778899aabbccddeeff-1234567890")}) {
    EXPECT_EQ(OwnerInCgroupPath(path).pod_uid, "") << path;
    EXPECT_EQ(OwnerInCgroupPath(path).container_id, "") << path;
  }
}

}  // namespace
}  // namespace profd
