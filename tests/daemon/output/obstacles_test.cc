// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/obstacles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "daemon/profile/frame_kinds.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ksym::Unresolved;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Lines(const Profile& profile) {
  return ObstacleLines(FindObstacles(profile), {});
}

// Nothing is said of a profile in which everything has its name.
TEST(ObstaclesTest, SaysNothingOfAWholeProfile) {
  TestProfile p;
  p.Add({.user = {p.User("main")}, .kernel = {p.Kernel("read")}});
  EXPECT_THAT(Lines(std::move(p).Finish()), IsEmpty());
  EXPECT_THAT(Lines(Profile()), IsEmpty());
}

// A sample counts once, by its innermost frame or else its callers.
TEST(ObstaclesTest, CountsSamples) {
  TestProfile p;
  const auto main = p.User("main");
  const auto bare = p.User("[lib]", "/lib", Unresolved::kNoSymbols);
  const auto other = p.User("[lib2]", "/lib2", Unresolved::kNoSymbol);
  p.Add({.user = {main}, .count = 5});
  p.Add({.user = {bare, bare, other, main}, .count = 3});
  p.Add({.user = {main, bare}, .count = 2});
  const Obstacles found = FindObstacles(std::move(p).Finish());
  EXPECT_EQ(found.samples, 10u);
  EXPECT_EQ(found.innermost, 3u);
  EXPECT_EQ(found.callers, 2u);
  EXPECT_EQ(found.incomplete, 0u);
  // Callers of a stripped file alone are no cause.
  ASSERT_THAT(found.causes, SizeIs(1));
  EXPECT_EQ(found.causes[0].subject, "/lib");
  EXPECT_EQ(found.causes[0].innermost, 3u);
  EXPECT_EQ(found.causes[0].samples, 5u);
}

// Code made at run time is its command's, and what helps is known by the
// program or a library of the same process, in whichever stack that is.
TEST(ObstaclesTest, KnowsRuntimes) {
  const auto cure = [](std::string_view module) {
    TestProfile p;
    const auto code = p.User("[unknown]", "", Unresolved::kAnonymous);
    p.Add({.comm = "MainThread", .pid = 9, .user = {p.User("x", module)}});
    p.Add({.comm = "MainThread", .pid = 9, .user = {p.User("y"), code}});
    return Lines(std::move(p).Finish()).at(1);
  };
  EXPECT_EQ(cure("/usr/bin/node"),
            "  50.0 % MainThread: code made at run time, without a perf map: "
            "start node with --perf-basic-prof");
  EXPECT_THAT(cure("/opt/lib/libjvm.so"),
              HasSubstr("-XX:+PreserveFramePointer, and run jcmd 9 Compiler"));
  EXPECT_THAT(cure("/usr/bin/python3.12"), HasSubstr("-X perf"));
  EXPECT_THAT(cure("/opt/libcoreclr.so"), HasSubstr("DOTNET_PerfMapEnabled"));
  EXPECT_THAT(cure("/usr/bin/ruby3.1"), HasSubstr("--yjit-perf"));
  EXPECT_THAT(cure("/bin/other"), HasSubstr("write /tmp/perf-9.map"));
}

// Where Java's frames are in stacks, flags of the JVM are of no use.
TEST(ObstaclesTest, KnowsJvmsThatAreFollowed) {
  TestProfile p;
  const auto code = p.User("[unknown]", "", Unresolved::kAnonymous);
  Frame method;
  method.name = p.builder().Intern("a.B.run");
  method.kind = &kJavaFrame;
  p.Add({.pid = 9, .user = {p.builder().AddFrame(method)}});
  p.Add({.pid = 9,
         .user = {p.User("x", "/opt/lib/libjvm.so"), code},
         .user_state = StackState::kNoTable});
  for (const std::string& line : Lines(std::move(p).Finish())) {
    EXPECT_THAT(line, ::testing::Not(HasSubstr("-XX:")));
  }
}

// A stripped file has its package, if that is known.
TEST(ObstaclesTest, NamesThePackage) {
  TestProfile p;
  p.Add({.user = {p.User("[app]", "/bin/app", Unresolved::kNoSymbol)}});
  const Profile profile = std::move(p).Finish();
  const auto package_of = [](const std::string& path,
                             std::string_view build_id) {
    EXPECT_EQ(path, "/bin/app");
    EXPECT_EQ(build_id, "0123456789abcdef");
    return std::string("app-dbgsym");
  };
  EXPECT_THAT(
      ObstacleLines(FindObstacles(profile), package_of),
      ElementsAre("without a name: 100.0 % of samples, and callers in 0.0 %; "
                  "incomplete stacks: 0.0 %",
                  "  100.0 % /bin/app has no symbols for it: install "
                  "app-dbgsym, or give --debuginfod"));
  EXPECT_THAT(Lines(profile).at(1), HasSubstr("its -dbgsym or -dbg package"));
}

// The three largest causes are told, the largest first; below one sample in a
// hundred there is none.
TEST(ObstaclesTest, TellsTheLargest) {
  TestProfile p;
  for (uint64_t i = 1; i <= 5; ++i) {
    const std::string file = "/lib" + std::to_string(i);
    p.Add({.user = {p.User("[x]", file, Unresolved::kGone)}, .count = i});
  }
  p.Add({.user = {p.User("[y]", "/rare", Unresolved::kGone)}, .count = 1});
  p.Add({.user = {p.User("main")}, .count = 101});
  const auto lines = Lines(std::move(p).Finish());
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[1], HasSubstr("/lib5 was deleted"));
  EXPECT_THAT(lines[2], HasSubstr("/lib4 "));
  EXPECT_THAT(lines[3], HasSubstr("/lib3 "));

  TestProfile rare;
  rare.Add({.user = {rare.User("[x]", "/x", Unresolved::kGone)}, .count = 1});
  rare.Add({.user = {rare.User("main")}, .count = 100});
  EXPECT_THAT(Lines(std::move(rare).Finish()), SizeIs(1));
}

// Incomplete stacks have the file in which their walk ended, the reason, and
// what helps against it.
TEST(ObstaclesTest, TellsWhereStacksEnd) {
  const auto line = [](StackState state, std::string_view module) {
    TestProfile p;
    p.Add({.user = {p.User("leaf"), p.User("last", module)},
           .user_state = state});
    p.Add({.user = {p.User("main")}});
    const auto lines = Lines(std::move(p).Finish());
    EXPECT_THAT(lines.at(0), HasSubstr("incomplete stacks: 50.0 %"));
    return lines.at(1);
  };
  EXPECT_EQ(line(StackState::kNoTable, "/lib/crypto.so"),
            "  50.0 % stacks end in /lib/crypto.so (no-table): compile it with "
            "-fasynchronous-unwind-tables or -fno-omit-frame-pointer");
  EXPECT_THAT(line(StackState::kNoMapping, "/x/libjvm.so"),
              HasSubstr("-XX:+PreserveFramePointer"));
  EXPECT_THAT(line(StackState::kNoTable, "/usr/bin/node"),
              HasSubstr("(no-table): none"));
  EXPECT_THAT(line(StackState::kTruncated, "/x/libjvm.so"),
              HasSubstr("(truncated): raise --max-stack-depth"));
  EXPECT_THAT(line(StackState::kBeyondCopy, "/x"), HasSubstr("sample longer"));
  EXPECT_THAT(line(StackState::kCollided, "/x"),
              HasSubstr("--stack-map=exact"));
}

}  // namespace
}  // namespace profd
