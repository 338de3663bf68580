// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/otlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "daemon/output/format.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using protozero::pbf_reader;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

struct DecodedSample {
  std::vector<std::string> frames;  // leaf first; "name@file"
  int64_t value = 0;
  std::map<std::string, std::string> attributes;
};
struct DecodedProfile {
  std::string type;
  std::vector<DecodedSample> samples;
};
struct DecodedResource {
  std::map<std::string, std::string> attributes;
  std::vector<DecodedProfile> profiles;
};

// A reader of its own: field numbers are written out here again. The decoder
// that protoc makes is in the end-to-end tests.
class Decoded {
 public:
  explicit Decoded(const std::string& bytes) {
    for (pbf_reader data(bytes); data.next();) {
      if (data.tag() == 2) ReadTables(data.get_message());
      if (data.tag() == 1) data.skip();
    }
    for (pbf_reader data(bytes); data.next(1);) {
      AddResource(data.get_message());
    }
  }

  std::vector<DecodedResource> resources;
  std::vector<std::string> strings;

 private:
  using Bytes = std::vector<std::string>;

  void ReadTables(pbf_reader tables) {
    std::map<uint32_t, Bytes> rows;
    while (tables.next()) rows[tables.tag()].push_back(tables.get_string());
    strings = rows[5];
    EXPECT_EQ(strings.front(), "");
    for (const uint32_t table : {1, 2, 3, 4, 6, 7}) {
      EXPECT_EQ(rows[table].front(), "") << table;
    }
    mappings_ = rows[1];
    locations_ = rows[2];
    functions_ = rows[3];
    attributes_ = rows[6];
    stacks_ = rows[7];
  }

  static std::string Value(pbf_reader value) {
    EXPECT_TRUE(value.next());
    return value.tag() == 1 ? value.get_string()
                            : std::to_string(value.get_int64());
  }

  std::string TextField(const std::string& row, uint32_t field) const {
    pbf_reader reader(row);
    return reader.next(field)
               ? strings.at(static_cast<size_t>(reader.get_int32()))
               : "";
  }

  std::string Frame(int32_t index) const {
    std::string names;
    std::string file;
    for (pbf_reader at(locations_.at(static_cast<size_t>(index))); at.next();) {
      if (at.tag() == 1) {
        file = TextField(mappings_.at(static_cast<size_t>(at.get_int32())), 4);
      } else if (at.tag() == 3) {
        pbf_reader line = at.get_message();
        EXPECT_TRUE(line.next(1));
        const auto function = static_cast<size_t>(line.get_int32());
        names += TextField(functions_.at(function), 1) + "@";
      } else {
        at.skip();
      }
    }
    return names + file;
  }

  DecodedSample Sample(pbf_reader from) const {
    DecodedSample sample;
    while (from.next()) {
      if (from.tag() == 1) {
        pbf_reader stack(stacks_.at(static_cast<size_t>(from.get_int32())));
        if (!stack.next(1)) continue;
        for (const int32_t index : stack.get_packed_int32()) {
          sample.frames.push_back(Frame(index));
        }
      } else if (from.tag() == 2) {
        const auto values = from.get_packed_int64();
        EXPECT_EQ(std::distance(values.begin(), values.end()), 1);
        sample.value = *values.begin();
      } else {
        for (const int32_t index : from.get_packed_int32()) {
          const std::string& row = attributes_.at(static_cast<size_t>(index));
          pbf_reader attribute(row);
          EXPECT_TRUE(attribute.next(2));
          sample.attributes[TextField(row, 1)] = Value(attribute.get_message());
        }
      }
    }
    return sample;
  }

  DecodedProfile ReadProfile(pbf_reader from) const {
    DecodedProfile profile;
    while (from.next()) {
      if (from.tag() == 1) {
        const std::string type = from.get_string();
        profile.type = TextField(type, 1) + "/" + TextField(type, 2);
      } else if (from.tag() == 2) {
        profile.samples.push_back(Sample(from.get_message()));
      } else {
        from.skip();
      }
    }
    return profile;
  }

  void AddResource(pbf_reader from) {
    DecodedResource resource;
    while (from.next()) {
      // A tag is known until its field was read.
      const bool is_resource = from.tag() == 1;
      pbf_reader part = from.get_message();
      while (part.next()) {
        const bool is_profile = !is_resource && part.tag() == 2;
        pbf_reader message = part.get_message();
        if (is_resource) {
          EXPECT_TRUE(message.next(1));
          const std::string key = message.get_string();
          EXPECT_TRUE(message.next(2));
          resource.attributes[key] = Value(message.get_message());
        } else if (is_profile) {
          resource.profiles.push_back(ReadProfile(message));
        }
      }
    }
    resources.push_back(std::move(resource));
  }

  Bytes mappings_;
  Bytes locations_;
  Bytes functions_;
  Bytes attributes_;
  Bytes stacks_;
};

const std::string kContainer(64, 'c');

// A resource per container and unit, a profile per kind, equal samples once.
TEST(OtlpTest, GroupsByOwnerAndKind) {
  TestProfile p;
  const std::vector stack = {p.User("spin"), p.User("main")};
  const std::string in_pod =
      "/kubepods.slice/kubepods-pod0123abcd_89ab_cdef_0123_456789abcdef.slice/"
      "cri-containerd-" +
      kContainer + ".scope";
  p.Add({.cgroup = in_pod, .user = stack, .count = 2});
  p.Add({.cgroup = in_pod, .user = stack, .count = 3});
  p.Add({.cgroup = in_pod, .user = stack, .kind = 1, .count = 1, .value = 77});
  p.Add({.cgroup = "/system.slice/nginx.service",
         .user = stack,
         .kernel = {p.Kernel("vfs_read")},
         .count = 4});
  p.Add({.comm = "kworker", .pid = 2, .count = 1});
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds.push_back({.name = "blocked",
                                    .unit = "nanoseconds",
                                    .event = "sched_switch",
                                    .has_values = true});
  const Decoded decoded(RenderOtlp(profile, {}));
  ASSERT_THAT(decoded.resources, SizeIs(3));
  const DecodedResource& nobody = decoded.resources[0];
  EXPECT_EQ(nobody.attributes.at("service.name"), "unknown_service");
  ASSERT_THAT(nobody.profiles, SizeIs(1));
  EXPECT_THAT(nobody.profiles[0].samples.at(0).frames, IsEmpty());
  const DecodedResource& unit = decoded.resources[1];
  EXPECT_EQ(unit.attributes.at("service.name"), "nginx");
  EXPECT_EQ(unit.attributes.at("systemd.unit"), "nginx.service");
  EXPECT_EQ(unit.attributes.at("host.arch"), "amd64");
  EXPECT_EQ(unit.attributes.count("container.id"), 0u);
  EXPECT_THAT(unit.profiles.at(0).samples.at(0).frames,
              ElementsAre("vfs_read@[kernel.kallsyms]", "spin@/bin/app",
                          "main@/bin/app"));
  const DecodedResource& pod = decoded.resources[2];
  EXPECT_EQ(pod.attributes.at("service.name"), kContainer.substr(0, 12));
  EXPECT_EQ(pod.attributes.at("container.id"), kContainer);
  EXPECT_EQ(pod.attributes.at("k8s.pod.uid"),
            "0123abcd-89ab-cdef-0123-456789abcdef");
  ASSERT_THAT(pod.profiles, SizeIs(2));
  EXPECT_EQ(pod.profiles[0].type, "samples/count");
  ASSERT_THAT(pod.profiles[0].samples, SizeIs(1));
  EXPECT_EQ(pod.profiles[0].samples[0].value, 5);
  EXPECT_THAT(pod.profiles[0].samples[0].attributes,
              ElementsAre(Pair("ksym.cgroup", in_pod), Pair("process.pid", "7"),
                          Pair("thread.name", "app")));
  EXPECT_EQ(pod.profiles[1].type, "blocked/nanoseconds");
  EXPECT_EQ(pod.profiles[1].samples.at(0).value, 77);
}

// Names of a container and of a service are the resource's, which is called as
// the process calls itself, or else as its container.
TEST(OtlpTest, ResourcesHaveLabels) {
  const std::string cgroup = "/docker/" + std::string(64, 'a');
  TestProfile p;
  const LabelSet web = {{.key = "container.name", .value = "web\n"}};
  const LabelSet shop = {{.key = "container.name", .value = "web\n"},
                         {.key = "service.name", .value = "shop"},
                         {.key = "team", .value = "a"}};
  const auto spin = p.User("spin");
  p.Add({.cgroup = cgroup, .user = {spin}, .labels = web});
  p.Add({.cgroup = cgroup, .user = {spin}, .labels = shop});
  const Profile profile = std::move(p).Finish();
  const Decoded decoded(RenderOtlp(profile, {}));
  ASSERT_THAT(decoded.resources, SizeIs(2));
  const auto& by_container = decoded.resources[0].attributes;
  EXPECT_EQ(by_container.at("service.name"), "web?");
  EXPECT_EQ(by_container.at("container.name"), "web?");
  EXPECT_EQ(by_container.at("container.id"), std::string(64, 'a'));
  const auto& by_process = decoded.resources[1].attributes;
  EXPECT_EQ(by_process.at("service.name"), "shop");
  EXPECT_EQ(by_process.at("container.name"), "web?");
  EXPECT_EQ(by_process.at("team"), "a");
}

// Labels that are not wanted are in no place.
TEST(OtlpTest, LeavesOutLabels) {
  TestProfile p;
  p.Add({.cgroup = "/system.slice/nginx.service", .user = {p.User("spin")}});
  OutputOptions options;
  options.labels = {.pid = false,
                    .comm = false,
                    .cgroup = false,
                    .unit = false,
                    .container_id = false};
  const Profile profile = std::move(p).Finish();
  const Decoded decoded(RenderOtlp(profile, options));
  ASSERT_THAT(decoded.resources, SizeIs(1));
  EXPECT_EQ(decoded.resources[0].attributes.at("service.name"),
            "unknown_service");
  EXPECT_THAT(decoded.resources[0].profiles.at(0).samples.at(0).attributes,
              IsEmpty());
  for (const std::string& text : decoded.strings) {
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("nginx")));
  }
}

// A time in which nothing ran is a profile all the same.
TEST(OtlpTest, EmptyProfile) {
  const Decoded decoded(RenderOtlp(std::move(TestProfile()).Finish(), {}));
  ASSERT_THAT(decoded.resources, SizeIs(1));
  ASSERT_THAT(decoded.resources[0].profiles, SizeIs(1));
  EXPECT_THAT(decoded.resources[0].profiles[0].samples, IsEmpty());
}

TEST(OtlpTest, OrderDoesNotMatter) {
  const std::string bytes = RenderOtlp(ExampleProfile(0), {});
  for (uint32_t seed = 1; seed < 20; ++seed) {
    EXPECT_EQ(RenderOtlp(ExampleProfile(seed), {}), bytes) << seed;
  }
}

}  // namespace
}  // namespace profd
