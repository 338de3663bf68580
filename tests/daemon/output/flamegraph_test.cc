// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/flamegraph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/difference_page.h"
#include "daemon/output/flame_tree.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// The path of each leaf, "comm;root;...", with its samples.
std::map<std::string, uint64_t> Paths(const FlameTree& tree) {
  std::map<std::string, uint64_t> paths;
  for (const FlameTree::Leaf& leaf : tree.leaves()) {
    std::vector<std::string_view> names;
    for (uint32_t node = leaf.node; node != 0;
         node = tree.nodes()[node].parent) {
      names.push_back(tree.frames()[tree.nodes()[node].frame].name);
    }
    std::string path;
    for (const std::string_view name : names | std::views::reverse) {
      if (!path.empty()) path += ';';
      path += name;
    }
    paths[path] += leaf.count;
  }
  return paths;
}

nlohmann::json DataOf(const std::string& page) {
  constexpr std::string_view kBegin = "id=\"data\">";
  const size_t begin = page.find(kBegin) + kBegin.size();
  return nlohmann::json::parse(
      page.substr(begin, page.find("</script>", begin) - begin));
}

// Every stack is a path from the root, user frames before kernel frames, and a
// path that begins like another shares its nodes.
TEST(FlameTreeTest, Paths) {
  TestProfile p;
  const auto main = p.User("main");
  p.Add({.user = {p.User("a"), main}, .count = 2});
  p.Add({.user = {main}, .count = 3});
  p.Add({.user = {p.User("b"), main}, .kernel = {p.Kernel("k")}, .count = 4});
  const FlameTree tree(std::move(p).Finish());
  EXPECT_THAT(Paths(tree),
              ElementsAre(Pair("app;main", 3), Pair("app;main;a", 2),
                          Pair("app;main;b;k", 4)));
  EXPECT_EQ(tree.nodes().size(), 6u);  // root, app, main, a, b, k
  for (uint32_t i = 1; i < tree.nodes().size(); ++i) {
    EXPECT_LT(tree.nodes()[i].parent, i);
  }
}

// Stacks of parked threads are below one frame for each command, whether they
// are whole or not; those of the same place that are not parked stand beside
// it.
TEST(FlameTreeTest, ParkedStacksAreBelowOneFrame) {
  TestProfile p;
  const auto wait = p.User("wait");
  p.Add(
      {.user = {wait, p.User("main")}, .kernel = {p.Kernel("k")}, .count = 2});
  p.Add({.user = {wait}, .user_state = StackState::kTruncated, .count = 3});
  p.Add({.comm = "other", .kernel = {p.Kernel("kthread")}, .count = 4});
  p.Add({.comm = "z", .user = {wait}, .count = 5});
  Profile profile = std::move(p).Finish();
  EXPECT_FALSE(FlameTree(profile).parked_frame());
  for (ProfileSample& sample : profile.samples) {
    sample.parked = profile.String(sample.comm) != "z";
  }
  const FlameTree tree(profile);
  EXPECT_THAT(Paths(tree), ElementsAre(Pair("app;[parked];[truncated];wait", 3),
                                       Pair("app;[parked];main;wait;k", 2),
                                       Pair("other;[parked];kthread", 4),
                                       Pair("z;wait", 5)));
  ASSERT_TRUE(tree.parked_frame());
  EXPECT_EQ(tree.frames()[*tree.parked_frame()].name, "[parked]");
  EXPECT_EQ(tree.frames()[*tree.parked_frame()].kind, FlameKind::kKernel);
}

// The page's script is told which frame it is that opens.
TEST(FlamegraphTest, SaysWhichFrameIsParked) {
  TestProfile p;
  p.Add({.user = {p.User("wait"), p.User("main")}});
  Profile profile = std::move(p).Finish();
  const auto data = [&] {
    return DataOf(Render(profile, OutputFormat::kFlamegraph, {}));
  };
  EXPECT_FALSE(data().contains("parked"));
  profile.samples[0].parked = true;
  const auto marked = data();
  EXPECT_EQ(marked.at("frames").at(marked.at("parked").get<size_t>()).at(0),
            "[parked]");
}

// What is missing of a stack is a frame of the kind "unknown", and so is a
// frame without a name; generated code and BPF programs have their own kinds.
TEST(FlameTreeTest, Kinds) {
  TestProfile p;
  p.Add({.user = {p.User("[libx.so]", "/libx.so", ksym::Unresolved::kNoSymbols),
                  p.User("js", "")},
         .kernel = {p.Kernel("bpf_prog_x", "[bpf]"), p.Kernel("vfs_read")},
         .user_state = StackState::kTruncated});
  p.Add({.user_state = StackState::kFaulted});
  const FlameTree tree(std::move(p).Finish());
  std::map<std::string, FlameKind> kinds;
  for (const FlameFrame& frame : tree.frames()) {
    kinds[frame.name] = frame.kind;
  }
  EXPECT_EQ(kinds.at("app"), FlameKind::kProcess);
  EXPECT_EQ(kinds.at("[libx.so]"), FlameKind::kUnknown);
  EXPECT_EQ(kinds.at("js"), FlameKind::kGenerated);
  EXPECT_EQ(kinds.at("bpf_prog_x"), FlameKind::kBpf);
  EXPECT_EQ(kinds.at("vfs_read"), FlameKind::kKernel);
  EXPECT_THAT(Paths(tree),
              ElementsAre(Pair("app;[Missed User Stack]", 1),
                          Pair("app;[truncated];js;[libx.so];vfs_read;"
                               "bpf_prog_x",
                               1)));
}

// Where no frame has a file, as in other programs' folded stacks, nothing says
// that code was generated.
TEST(FlameTreeTest, KindsWithoutFiles) {
  TestProfile p;
  p.Add({.user = {p.User("a", ""), p.User("main", "")}});
  const FlameTree tree(std::move(p).Finish());
  size_t functions = 0;
  for (const FlameFrame& frame : tree.frames()) {
    if (frame.name != "a" && frame.name != "main") continue;
    EXPECT_EQ(frame.kind, FlameKind::kUser) << frame.name;
    ++functions;
  }
  EXPECT_EQ(functions, 2u);
}

// Processes of one command share its nodes and keep their samples apart.
TEST(FlameTreeTest, LeavesByProcess) {
  TestProfile p;
  p.Add({.pid = 1, .user = {p.User("f")}, .count = 2});
  p.Add({.pid = 2, .user = {p.User("f")}, .count = 3});
  const FlameTree tree(std::move(p).Finish());
  EXPECT_THAT(tree.leaves(), ElementsAre(FlameTree::Leaf{2, 1, 0, 0, 0, 2},
                                         FlameTree::Leaf{2, 2, 0, 0, 0, 3}));
}

// Samples of one process in two cgroups stay apart, and the numbers of cgroups
// are in the order of their paths.
TEST(FlameTreeTest, LeavesByCgroup) {
  TestProfile p;
  p.Add({.pid = 1, .cgroup = "/b", .user = {p.User("f")}, .count = 2});
  p.Add({.pid = 1, .cgroup = "/a", .user = {p.User("f")}, .count = 3});
  const FlameTree tree(std::move(p).Finish());
  EXPECT_THAT(tree.cgroups(), ElementsAre("", "/a", "/b"));
  EXPECT_THAT(tree.leaves(), ElementsAre(FlameTree::Leaf{2, 1, 0, 1, 0, 3},
                                         FlameTree::Leaf{2, 1, 0, 2, 0, 2}));
}

// The page knows the unit and the container of each owner of samples, where the
// profile does and its labels may be shown. Equal ones are one.
TEST(FlamegraphTest, Groups) {
  const std::string id(64, 'a');
  const std::string web = "/system.slice/web.service";
  TestProfile p;
  p.Add({.pid = 1, .cgroup = web, .user = {p.User("f")}});
  p.Add({.pid = 2, .cgroup = web + "/worker", .user = {p.User("f")}});
  p.Add({.pid = 3,
         .cgroup = "/system.slice/docker-" + id + ".scope",
         .user = {p.User("f")}});
  p.Add({.pid = 4, .user = {p.User("f")}});
  const Profile profile = std::move(p).Finish();
  const auto data = DataOf(RenderFlamegraph(profile, {}));
  EXPECT_EQ(data["owners"],
            nlohmann::json({1, 0, 2, 2, 0, 2, 3, 0, 1, 4, 0, 0}));
  EXPECT_EQ(
      data["groups"],
      nlohmann::json::array(
          {{"", ""}, {"docker-" + id + ".scope", id}, {"web.service", ""}}));
  const auto without = DataOf(RenderFlamegraph(
      profile, {.labels = {.unit = false, .container_id = false}}));
  EXPECT_FALSE(without.contains("groups"));
}

// The page can group by thread what tells threads apart.
TEST(FlamegraphTest, GroupsByThread) {
  for (const uint32_t tid : {0u, 7u, 8u}) {
    TestProfile p;
    p.Add({.pid = 7, .tid = tid, .user = {p.User("main")}});
    const Profile profile = std::move(p).Finish();
    EXPECT_EQ(DataOf(Render(profile, OutputFormat::kFlamegraph, {}))["threads"],
              tid == 8);
    EXPECT_EQ(DataOf(Render(profile, OutputFormat::kFlamegraph,
                            {.by = OutputOptions::By::kTid}))["threads"],
              true);
  }
}

// No text of a profiled program can end the data or become markup.
TEST(FlamegraphTest, HostileNames) {
  TestProfile p;
  p.Add({.comm = "</script>",
         .user = {p.User("</script><script>alert(1)</script>", "<!--")}});
  const std::string page = RenderFlamegraph(std::move(p).Finish(), {});
  EXPECT_THAT(page, Not(HasSubstr("alert(1)<")));
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  const auto data = DataOf(page);
  bool found = false;
  for (const auto& frame : data["frames"]) {
    found = found || frame[0] == "</script><script>alert(1)</script>";
  }
  EXPECT_TRUE(found);
}

// The page requests nothing: it names no address but its own data's.
TEST(FlamegraphTest, IsSelfContained) {
  const std::string page = RenderFlamegraph(ExampleProfile(1), {});
  for (const std::string_view way :
       {"http:", "https:", "src=", "@import", "url(", "fetch(", "@DATA@",
        "@STYLE@", "@SCRIPT@"}) {
    EXPECT_THAT(page, Not(HasSubstr(way)));
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

// The data has every emitted sample, and says what was lost and what is
// incomplete.
TEST(FlamegraphTest, Data) {
  const Profile profile = ExampleProfile(1);
  const auto data = DataOf(RenderFlamegraph(profile, {}));
  EXPECT_EQ(data["nodes"].size() % 2, 0u);
  uint64_t sum = 0;
  for (size_t i = 2; i < data["leaves"].size(); i += 3) {
    sum += data["leaves"][i].get<uint64_t>();
  }
  EXPECT_EQ(sum, profile.accounting.emitted);
  EXPECT_EQ(data["loss"], "8 of 120 samples lost, 6 with incomplete stacks");
  EXPECT_EQ(data["threads"], true);
  const auto about = data["about"].dump();
  EXPECT_THAT(about, HasSubstr(R"(["lost: counts-full","5"])"));
  EXPECT_THAT(about, HasSubstr("2023-11-14 22:13:20 UTC"));
  EXPECT_THAT(about, HasSubstr("kernel symbols are hidden"));
}

// The same samples give the same bytes, in whatever order they come; an empty
// profile is a page too.
TEST(FlamegraphTest, OrderDoesNotMatter) {
  const std::string first = RenderFlamegraph(ExampleProfile(1), {});
  for (uint32_t seed = 2; seed < 10; ++seed) {
    EXPECT_TRUE(RenderFlamegraph(ExampleProfile(seed), {}) == first) << seed;
  }
  const auto empty = DataOf(RenderFlamegraph(TestProfile().Finish(), {}));
  EXPECT_TRUE(empty["leaves"].empty());
}

// Extension and name of the format.
TEST(FlamegraphTest, IsSelected) {
  EXPECT_EQ(FormatOfExtension("a.html"), OutputFormat::kFlamegraph);
  EXPECT_EQ(*ParseOutputFormat("flamegraph"), OutputFormat::kFlamegraph);
}

// Frames of one name are one box, whatever their lines; its line is the one
// with the most samples. Inlined frames have a kind of their own.
TEST(FlameTreeTest, Lines) {
  TestProfile p;
  const auto inner = p.Inlined("inner", "/a.h", 5);
  p.Add({.user = {inner, p.Placed("outer", "/a.cc", 30)}, .count = 2});
  p.Add({.user = {p.Placed("outer", "/a.cc", 31)}, .count = 3});
  p.Add({.user = {inner, p.Placed("outer", "/a.cc", 30)}, .count = 2});
  const FlameTree tree(std::move(p).Finish());
  EXPECT_THAT(Paths(tree),
              ElementsAre(Pair("app;outer", 3), Pair("app;outer;inner", 4)));
  std::map<std::string, std::string> places;
  for (size_t i = 1; i < tree.nodes().size(); ++i) {
    const FlameFrame& frame = tree.frames()[tree.nodes()[i].frame];
    places[frame.name] = tree.places()[tree.node_places()[i]];
    EXPECT_EQ(frame.kind == FlameKind::kInlined, frame.name == "inner");
  }
  EXPECT_THAT(places, ElementsAre(Pair("app", ""), Pair("inner", "/a.h:5"),
                                  Pair("outer", "/a.cc:30")));
}

// Samples of CPU time and of waits.
Profile OfTwoKinds() {
  TestProfile p;
  const auto main = p.User("main");
  p.Add({.user = {main}, .count = 5});
  p.Add({.user = {main}, .kind = 1, .count = 2, .value = 900});
  p.builder().Add(Accounting{.taken = 8, .emitted = 7});
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds.push_back({.name = "blocked",
                                    .unit = "nanoseconds",
                                    .event = "sched_switch",
                                    .has_values = true});
  return profile;
}

std::map<std::string, std::string> FactsOf(const nlohmann::json& data) {
  std::map<std::string, std::string> facts;
  for (const auto& fact : data.at("about")) facts[fact.at(0)] = fact.at(1);
  return facts;
}

// A page of which no kind was asked for has all of them, in one unit, and opens
// with their sum; it says of each what it adds up to.
TEST(FlamegraphTest, HasAllKinds) {
  const Profile profile = OfTwoKinds();
  auto data = DataOf(Render(profile, OutputFormat::kFlamegraph, {}));
  EXPECT_EQ(data.at("title"), "host: 0.1 s of time of threads, wall");
  EXPECT_EQ(data.at("unit"), "nanoseconds");
  EXPECT_EQ(FactsOf(data)["shown"], "wall, nanoseconds");
  EXPECT_EQ(FactsOf(data)["samples"], "8 taken, 0 lost");
  EXPECT_FALSE(data.contains("leaves"));
  EXPECT_EQ(data.at("sum").at("title"), data.at("title"));
  EXPECT_EQ(FactsOf(data.at("sum"))["event"],
            "cpu-clock and sched_switch; adds up to the time of threads, not "
            "of CPUs");
  auto kinds = data.at("kinds");
  ASSERT_EQ(kinds.size(), 2u);
  // Both stacks are one node, which is the third.
  EXPECT_EQ(kinds[0].at("leaves"), nlohmann::json({2, 0, 5}));
  EXPECT_EQ(kinds[0].at("scale"), 1'000'000'000 / 99);
  EXPECT_EQ(kinds[0].at("title"), "host: 0.1 s of time of CPUs, cpu");
  EXPECT_EQ(FactsOf(kinds[0])["event"],
            "cpu-clock; adds up to the time of CPUs");
  EXPECT_EQ(kinds[1].at("leaves"), nlohmann::json({2, 0, 900}));
  EXPECT_EQ(kinds[1].at("scale"), 1);
  EXPECT_EQ(kinds[1].at("title"), "host: 0.0 s of time of threads, blocked");
  EXPECT_EQ(kinds[1].at("unit"), "nanoseconds");
}

// Kinds of which no sum makes sense open with the first one, each in its unit.
TEST(FlamegraphTest, HasKindsThatAreNoStates) {
  Profile profile = OfTwoKinds();
  profile.metadata.kinds[1].name = "alloc";
  profile.metadata.kinds[1].unit = "bytes";
  auto data = DataOf(Render(profile, OutputFormat::kFlamegraph, {}));
  EXPECT_EQ(data.at("title"), "host: 5 samples");
  EXPECT_FALSE(data.contains("unit"));
  EXPECT_FALSE(data.contains("sum"));
  const auto kinds = data.at("kinds");
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].at("unit"), "samples");
  EXPECT_EQ(kinds[0].at("scale"), 1);
  EXPECT_EQ(kinds[1].at("title"), "host: 900 bytes of alloc");
  EXPECT_EQ(kinds[1].at("unit"), "bytes");
}

// Pictures say which kind they show and of what unit; amounts are no samples.
TEST(FlamegraphTest, SaysTheKindAndItsUnit) {
  Profile profile = OfTwoKinds();
  const auto page_of = [&](std::string_view kind) {
    Profile chosen = profile;
    EXPECT_TRUE(ChooseKind(kind, RowOf(OutputFormat::kFlamegraph), chosen));
    return DataOf(Render(chosen, OutputFormat::kFlamegraph, {}));
  };
  auto cpu = page_of("cpu");
  EXPECT_EQ(cpu.at("title"), "host: 5 samples");
  EXPECT_FALSE(cpu.contains("unit"));
  EXPECT_FALSE(cpu.contains("kinds"));
  EXPECT_EQ(FactsOf(cpu)["shown"], "cpu, samples");
  EXPECT_EQ(FactsOf(cpu)["samples"], "8 taken, 5 shown, 0 lost");

  auto blocked = page_of("blocked");
  EXPECT_EQ(blocked.at("title"), "host: 0.0 s of time of threads, blocked");
  EXPECT_EQ(blocked.at("unit"), "nanoseconds");
  EXPECT_EQ(blocked.at("leaves").size(), 3u);
  EXPECT_FALSE(blocked.contains("kinds"));
  EXPECT_EQ(FactsOf(blocked)["shown"], "blocked, nanoseconds");
  EXPECT_EQ(FactsOf(blocked)["samples"], "8 taken, 0 lost");
  EXPECT_EQ(FactsOf(blocked)["event"],
            "sched_switch; adds up to the time of threads, not of CPUs");
  ASSERT_TRUE(ShowKind("blocked", profile));
  const auto render = [&](OutputFormat format) {
    return Render(profile, format, {});
  };
  const std::string svg = render(OutputFormat::kSvg);
  EXPECT_THAT(svg, HasSubstr(": 900 nanoseconds, 100.00 %"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("samples")));
}

// speedscope is told the units that it knows.
TEST(SpeedscopeTest, KnowsUnits) {
  Profile profile = OfTwoKinds();
  ASSERT_TRUE(ShowKind("blocked", profile));
  const auto text_of = [&](std::string unit) {
    profile.metadata.kinds.front().unit = std::move(unit);
    return Render(profile, OutputFormat::kSpeedscope, {});
  };
  EXPECT_THAT(
      text_of("nanoseconds"),
      HasSubstr(R"("unit":"nanoseconds","startValue":0,"endValue":900)"));
  EXPECT_THAT(text_of("bytes"), HasSubstr(R"("unit":"bytes")"));
  EXPECT_THAT(text_of("count"), HasSubstr(R"("unit":"none")"));
}

TEST(FlamegraphTest, PlacesOnlyWithLines) {
  TestProfile p;
  p.Add({.user = {p.Placed("outer", "/a.cc", 30)}});
  const auto with = DataOf(RenderFlamegraph(std::move(p).Finish(), {}));
  EXPECT_EQ(with.at("places"), nlohmann::json({"", "/a.cc:30"}));
  EXPECT_EQ(with.at("nodePlaces"), nlohmann::json({0, 0, 1}));
  TestProfile q;
  q.Add({.user = {q.User("main")}});
  const auto without = DataOf(RenderFlamegraph(std::move(q).Finish(), {}));
  EXPECT_FALSE(without.contains("places"));
}

// Each node has the samples of both profiles, and equal frames are one node
// though only one profile says their file.
TEST(DifferencePageTest, HasBothProfiles) {
  TestProfile before;
  before.Add({.user = {before.User("f"), before.User("main")}, .count = 3});
  before.Add({.user = {before.User("gone"), before.User("main")}, .count = 1});
  TestProfile after;
  after.Add(
      {.user = {after.User("f", ""), after.User("main", "")}, .count = 5});
  const nlohmann::json data = DataOf(
      RenderDifferencePage(std::move(before).Finish(),
                           std::move(after).Finish(), {"a.json", "</b>"}));
  EXPECT_EQ(data["title"], "</b> compared with a.json");
  EXPECT_EQ(data["nodes"].size(), 2u * 5);  // root, app, main, f, gone
  ASSERT_EQ(data["leaves"].size(), 3u);
  EXPECT_EQ(data["leaves"][2], 5);
  ASSERT_EQ(data["before"].size(), 6u);
  EXPECT_EQ(data["before"][0], data["leaves"][0]);
  EXPECT_EQ(data["before"][2], 3);
  EXPECT_EQ(data["before"][3], 1);  // the node after that
  EXPECT_EQ(data["before"][5], 1);
  EXPECT_EQ(data["measure"]["unit"], "CPUs");
  EXPECT_EQ(FactsOf(data)["shown"], "cpu, samples");
}

// It says what is compared, where that is not CPU time.
TEST(DifferencePageTest, SaysTheKind) {
  Profile before = OfTwoKinds();
  Profile after = OfTwoKinds();
  for (Profile* profile : {&before, &after}) {
    ASSERT_TRUE(ShowKind("blocked", *profile));
    KeepFirstKind(*profile);
  }
  const nlohmann::json data =
      DataOf(RenderDifferencePage(before, after, {"a", "b"}));
  EXPECT_EQ(data["title"], "b compared with a: time of threads, blocked");
  EXPECT_EQ(data["unit"], "nanoseconds");
  EXPECT_EQ(FactsOf(data)["shown"], "blocked, nanoseconds");
}

}  // namespace
}  // namespace profd
