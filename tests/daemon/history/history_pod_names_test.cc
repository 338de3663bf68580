// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/history/history_writer.h"
#include "daemon/history/layout.h"
#include "daemon/history/limits.h"
#include "daemon/history/part_adder.h"
#include "daemon/history/pod_names.h"
#include "daemon/history/queries.h"
#include "daemon/history/segment_merger.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/printable.h"
#include "tests/daemon/history/history_answers.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string kWebUid = "01234567-89ab-cdef-0123-456789abcdef";
const std::string kDbUid = "fedcba98-89ab-cdef-0123-456789abcdef";
const std::string kWebId(64, 'a');
const std::string kDbId(64, 'b');
const std::string kDockerId(64, 'c');
const std::string kWebCgroup = "/kubepods/pod" + kWebUid + "/" + kWebId;
const std::string kDbCgroup = "/kubepods/burstable/pod" + kDbUid + "/" + kDbId;
const std::string kDockerCgroup =
    "/system.slice/docker-" + kDockerId + ".scope";

LabelSet PodLabels(std::string_view space, std::string_view pod,
                   std::string_view container) {
  return {{.key = "k8s.container.name", .value = std::string(container)},
          {.key = "k8s.namespace.name", .value = std::string(space)},
          {.key = "k8s.pod.name", .value = std::string(pod)}};
}

LabelSet DockerLabels(std::string_view name) {
  return {{.key = "container.name", .value = std::string(name)}};
}

struct Sampled {
  std::string cgroup;
  LabelSet labels;
};

// A part of a second with a sample in each of these cgroups.
Profile PartOfOwners(unsigned number, const std::vector<Sampled>& owners) {
  ProfileBuilder builder;
  uint32_t pid = 100;
  for (const Sampled& owner : owners) {
    builder.AddSample({.comm = builder.Intern("work"),
                       .pid = pid++,
                       .cgroup = builder.Intern(owner.cgroup),
                       .labels = builder.AddLabels(owner.labels),
                       .count = 1});
  }
  builder.Add({.taken = owners.size(), .emitted = owners.size()});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 10, 0)};
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

std::vector<std::string> RowsOf(const Tables& tables, TimelineBy by,
                                const Selection& filter = {}) {
  TimelineRequest request = {
      .selection = filter, .step_ns = 60 * kSecond, .by = by};
  request.selection.from_unix_ns = kFirstPart;
  request.selection.until_unix_ns = kFirstPart + 60 * kSecond;
  auto adder = TimelineAdder::Begin(std::move(request));
  EXPECT_TRUE(adder);
  const auto added = adder->Add(tables);
  EXPECT_TRUE(added) << added.error().message();
  std::vector<std::string> names;
  for (const auto& row : std::move(*adder).Finish().rows) {
    names.push_back(row.name);
  }
  return names;
}

std::vector<std::string> PodsOf(const Tables& tables,
                                const Selection& filter = {}) {
  return RowsOf(tables, TimelineBy::kPod, filter);
}

std::vector<std::string> ContainersOf(const Tables& tables,
                                      const Selection& filter = {}) {
  return RowsOf(tables, TimelineBy::kContainer, filter);
}

const std::vector<Sampled> kThreeNamed = {
    {.cgroup = kWebCgroup, .labels = PodLabels("shop", "web-0", "nginx")},
    {.cgroup = kDbCgroup, .labels = PodLabels("bank", "vault-0", "nginx")},
    {.cgroup = kDockerCgroup, .labels = DockerLabels("proxy")}};

// Rows have names where they are known, and ids where they are not.
TEST(PodNames, AreThoseOfRows) {
  const Tables named = TablesOf({PartOfOwners(0, kThreeNamed)});
  EXPECT_THAT(PodsOf(named),
              UnorderedElementsAre("shop/web-0", "bank/vault-0", ""));
  EXPECT_THAT(
      ContainersOf(named),
      UnorderedElementsAre("shop/web-0/nginx", "bank/vault-0/nginx", "proxy"));
  const Tables unnamed =
      TablesOf({PartOfOwners(0, {{kWebCgroup, {}}, {kDockerCgroup, {}}})});
  EXPECT_THAT(PodsOf(unnamed), UnorderedElementsAre(kWebUid, ""));
  EXPECT_THAT(ContainersOf(unnamed), UnorderedElementsAre(kWebId, kDockerId));
}

// What is first seen without names has those that are found later, also of
// other containers of its pod, and the last ones that it had.
TEST(PodNames, AreThoseThatWereFoundLast) {
  const std::string beside = "/kubepods/pod" + kWebUid + "/" + kDbId;
  const Tables tables = TablesOf(
      {PartOfOwners(0, {{kWebCgroup, {}}, {beside, {}}, {kDockerCgroup, {}}}),
       PartOfOwners(1, {{kWebCgroup, PodLabels("shop", "web-0", "nginx")},
                        {kDockerCgroup, DockerLabels("old")}}),
       PartOfOwners(2, {{kDockerCgroup, DockerLabels("new")}}),
       PartOfOwners(3, {{kDockerCgroup, {}}})});
  EXPECT_EQ(tables.cgroup_names.size(), 3u);
  EXPECT_THAT(PodsOf(tables), UnorderedElementsAre("shop/web-0", ""));
  EXPECT_THAT(ContainersOf(tables),
              UnorderedElementsAre("shop/web-0/nginx", kDbId, "new"));
}

TEST(PodNames, ChooseSamples) {
  const Tables tables = TablesOf({PartOfOwners(0, kThreeNamed)});
  for (const std::string& wanted :
       {std::string("web-0"), std::string("shop/web-0"), kWebUid,
        kWebUid.substr(0, PodNames::kLeastIdCharacters)}) {
    EXPECT_THAT(PodsOf(tables, {.pod = wanted}), ElementsAre("shop/web-0"))
        << wanted;
  }
  // Names are whole, and a few digits could be a name.
  for (const std::string& wanted :
       {std::string("web"), std::string("bank/web-0"), std::string("shop"),
        kWebUid.substr(0, PodNames::kLeastIdCharacters - 1)}) {
    EXPECT_THAT(PodsOf(tables, {.pod = wanted}), IsEmpty()) << wanted;
  }
  for (const std::string& wanted :
       {std::string("shop/web-0/nginx"), kWebId.substr(0, 12)}) {
    EXPECT_THAT(ContainersOf(tables, {.container = wanted}),
                ElementsAre("shop/web-0/nginx"))
        << wanted;
  }
  EXPECT_THAT(ContainersOf(tables, {.container = "nginx"}),
              UnorderedElementsAre("shop/web-0/nginx", "bank/vault-0/nginx"));
  EXPECT_THAT(ContainersOf(tables, {.container = "proxy"}),
              ElementsAre("proxy"));
  EXPECT_THAT(ContainersOf(tables, {.container = "web-0/nginx"}), IsEmpty());
}

// A journal has names as they come, a segment the last ones of each cgroup, and
// of files that become one the later's count.
TEST(PodNames, AreInAllKindsOfFiles) {
  std::string journal = JournalHeader(7);
  PartAdder adder;
  Sizes written;
  for (const Profile& part :
       {PartOfOwners(0, kThreeNamed), PartOfOwners(1, {{kDockerCgroup, {}}}),
        PartOfOwners(2, {{kDockerCgroup, DockerLabels("renamed")}})}) {
    ASSERT_TRUE(adder.Add(part, {}));
    journal += EncodeRecord(adder.tables(), written).value();
    written = adder.tables().sizes();
  }
  const auto read = DecodeJournal(journal);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->records, 3u);
  EXPECT_EQ(read->tables.cgroup_names, adder.tables().cgroup_names);
  EXPECT_THAT(ContainersOf(read->tables),
              UnorderedElementsAre("renamed", "shop/web-0/nginx",
                                   "bank/vault-0/nginx"));

  SegmentMerger merger;
  ASSERT_TRUE(merger.Add(read->tables));
  ASSERT_TRUE(merger.Add(
      TablesOf({PartOfOwners(3, {{kDockerCgroup, DockerLabels("again")}})})));
  Tables merged = std::move(merger).Finish();
  EXPECT_EQ(merged.cgroup_names.size(), 3u);
  const auto segment =
      DecodeSegment(EncodeSegment(merged, {.first = 7, .last = 8}).value());
  ASSERT_TRUE(segment) << segment.error().message();
  EXPECT_EQ(segment->tables.cgroup_names, merged.cgroup_names);
  EXPECT_THAT(
      ContainersOf(segment->tables),
      UnorderedElementsAre("again", "shop/web-0/nginx", "bank/vault-0/nginx"));
}

// Profiles of a time have the labels that those of the service have.
TEST(PodNames, AreLabelsOfProfiles) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  writer->Add(PartOfOwners(0, kThreeNamed));
  ASSERT_TRUE(writer->Commit(kFirstPart + kSecond));
  const auto range =
      ReadRange(directory.path(), {}, {.max_bytes = size_t{64} << 20});
  ASSERT_TRUE(range);
  const Profile& profile = range->profile;
  std::vector<std::string> texts;
  for (const ProfileSample& sample : profile.samples) {
    std::string text(profile.String(sample.cgroup));
    for (const auto& [key, value] : profile.LabelsOf(sample)) {
      text += fmt::format(" {}={}", profile.String(key), profile.String(value));
    }
    texts.push_back(text);
  }
  EXPECT_THAT(
      texts,
      UnorderedElementsAre(
          kWebCgroup + " k8s.container.name=nginx k8s.namespace.name=shop"
                       " k8s.pod.name=web-0",
          kDbCgroup + " k8s.container.name=nginx k8s.namespace.name=bank"
                      " k8s.pod.name=vault-0",
          kDockerCgroup + " container.name=proxy"));
}

// What runs in a container can call a cgroup as another pod's. It gets no names
// of that one, and gives it none.
TEST(PodNames, AreNotLentToCgroupsBelow) {
  const std::string faked = kDbCgroup + "/kubepods/pod" + kWebUid;
  const Tables tables =
      TablesOf({PartOfOwners(0, {{faked, PodLabels("bank", "vault-0", "nginx")},
                                 {kWebCgroup, {}}}),
                PartOfOwners(1, {{faked + "/" + kWebId, {}}})});
  EXPECT_THAT(PodsOf(tables), UnorderedElementsAre("bank/vault-0", kWebUid));
  EXPECT_THAT(ContainersOf(tables),
              UnorderedElementsAre("bank/vault-0/nginx", kWebId));
}

TEST(PodNames, MayBeAnything) {
  const std::string evil = "<img src=x>\n\x1b[31m/\xe2\x80\xae";
  const std::string long_name(ksym::kMaxShownBytes + 1, 'n');
  const Tables tables = TablesOf(
      {PartOfOwners(0, {{kWebCgroup, PodLabels(evil, "web", long_name)},
                        {kDbCgroup, PodLabels("", "web/x", "")},
                        {kDockerCgroup, DockerLabels("a/b")}})});
  const std::vector<std::string> pods = PodsOf(tables);
  EXPECT_THAT(pods, UnorderedElementsAre(evil + "/web", "web/x", ""));
  // The name as it was printed finds it.
  EXPECT_THAT(PodsOf(tables, {.pod = ksym::Printable(evil) + "/web"}),
              ElementsAre(evil + "/web"));
  // Three long names are no longer than one, and it still chooses.
  for (const std::string& name : ContainersOf(tables)) {
    EXPECT_LE(name.size(), ksym::kMaxShownBytes);
    EXPECT_THAT(ContainersOf(tables, {.container = name}), ElementsAre(name));
  }
}

// Labels of a process alone name nothing, nor does a namespace without a pod.
TEST(PodNames, AreOfPodsAndContainersOnly) {
  const Tables tables = TablesOf({PartOfOwners(
      0, {{kWebCgroup, {{.key = "service.name", .value = "x"}}},
          {kDbCgroup, {{.key = "k8s.namespace.name", .value = "x"}}},
          {"", DockerLabels("x")}})});
  EXPECT_THAT(tables.cgroup_names, IsEmpty());
}

TEST(PodNames, AreBounded) {
  TableBuilder builder;
  for (uint32_t i = 0; i <= kMaxCgroupNames; ++i) {
    builder.NameCgroup({.cgroup = 1, .container = i + 1});
    builder.NameCgroup({.cgroup = 1, .container = i + 1});
  }
  EXPECT_EQ(builder.tables().cgroup_names.size(), kMaxCgroupNames);
  // A reader takes as many.
  Tables tables = TablesOf({PartNumber(0)});
  tables.cgroup_names.resize(kMaxCgroupNames);
  EXPECT_TRUE(DecodeSegment(EncodeSegment(tables, {1, 1}).value()));
  tables.cgroup_names.emplace_back();
  EXPECT_FALSE(DecodeSegment(EncodeSegment(tables, {1, 1}).value()));
  tables.cgroup_names = {{.cgroup = 1, .container = 1'000'000}};
  EXPECT_FALSE(DecodeSegment(EncodeSegment(tables, {1, 1}).value()));
}

std::string ReadData(const std::string& name) {
  std::ifstream in(KSYM_TEST_DATA_DIR "/history/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Files of the version without names are read, cut anywhere as well, and what
// is made of them is of this one.
TEST(PodNames, AreMissingInOlderFiles) {
  const std::string journal_bytes = ReadData("version-1.journal");
  const auto journal = DecodeJournal(journal_bytes);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->records, 3u);
  EXPECT_EQ(journal->bytes_after, 0u);
  const std::string segment_bytes = ReadData("version-1.segment");
  const auto segment = DecodeSegment(segment_bytes);
  ASSERT_TRUE(segment) << segment.error().message();
  EXPECT_EQ(segment->sequences, (Sequences{7, 7}));
  EXPECT_EQ(segment->tables.rows.size(), journal->tables.rows.size());
  for (const Tables* tables : {&journal->tables, &segment->tables}) {
    EXPECT_THAT(tables->cgroup_names, IsEmpty());
    EXPECT_THAT(RowsOf(*tables, TimelineBy::kUnit),
                UnorderedElementsAre("nginx.service", ""));
  }
  const auto outline =
      ReadSegmentOutline(segment_bytes.substr(0, kSegmentHeaderBytes));
  ASSERT_TRUE(outline) << outline.error().message();
  EXPECT_EQ(outline->most.cgroup_names, 0u);
  EXPECT_GE(outline->most.rows, segment->tables.rows.size());
  for (size_t size = 0; size < segment_bytes.size(); ++size) {
    EXPECT_FALSE(DecodeSegment(segment_bytes.substr(0, size))) << size;
  }
  // The version is of the header, which has a checksum.
  for (const char version : {'\0', '\2', '\3', '\4', '\5', '\6', '\7'}) {
    std::string other = segment_bytes;
    other[8] = version;
    EXPECT_FALSE(DecodeSegment(other));
  }
  Tables tables = segment->tables;
  const auto again = EncodeSegment(tables, {.first = 7, .last = 7});
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[8], 6);
  EXPECT_EQ(DecodeSegment(*again).value().tables.rows, segment->tables.rows);
}

// A service that comes after an older one goes on in its directory.
TEST(PodNames, ComeBesideOlderFiles) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/000000000007.journal", std::ios::binary)
      << ReadData("version-1.journal");
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer) << writer.error().message();
  EXPECT_EQ(writer->counts().files_bad, 0u);
  EXPECT_EQ(writer->counts().bytes_torn, 0u);
  writer->Add(PartOfOwners(5, kThreeNamed));
  ASSERT_TRUE(writer->Commit(kFirstPart + 6 * kSecond));
  EXPECT_EQ(FilesIn(directory.path()),
            (std::vector<std::string>{"7-7", "8-8"}));
  const auto compacted = writer->Compact(kDue, kNever);
  ASSERT_TRUE(compacted) << compacted.error().message();
  EXPECT_EQ(FilesIn(directory.path()), (std::vector<std::string>{"7-8"}));
  const auto line =
      ReadTimeline(directory.path(),
                   {.selection = {.from_unix_ns = kFirstPart,
                                  .until_unix_ns = kFirstPart + 60 * kSecond},
                    .step_ns = 60 * kSecond,
                    .by = TimelineBy::kPod},
                   {.max_bytes = size_t{64} << 20});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->line.coverage.parts, 4u);
  ASSERT_EQ(line->line.rows.size(), 3u);
  EXPECT_EQ(line->line.rows[1].name, "bank/vault-0");
}

}  // namespace
}  // namespace profd::history
