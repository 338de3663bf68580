// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/base/now_ns.h"
#include "daemon/labels/environment_reader.h"
#include "daemon/labels/environment_text.h"
#include "tests/daemon/labels/running_cat.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr EnvironmentChoice kBoth = {.service_name = true,
                                     .resource_attributes = true};

std::string Block(std::initializer_list<std::string_view> variables) {
  std::string block;
  for (const std::string_view variable : variables) {
    block += variable;
    block += '\0';
  }
  return block;
}

EnvironmentLabels ParseAttributes(const std::string& list) {
  return ParseEnvironment(Block({"OTEL_RESOURCE_ATTRIBUTES=" + list}), kBoth);
}

// Only what was chosen is kept, and nothing else of the environment.
TEST(EnvironmentTextTest, KeepsWhatWasChosen) {
  const std::string block =
      Block({"PASSWORD=x", "OTEL_SERVICE_NAME=shop", "OTEL_SERVICE_NAME=no",
             "OTEL_RESOURCE_ATTRIBUTES=team=a,service.name=b", "OTEL_",
             "OTEL_SERVICE_NAMES=no"});
  const Label service = {.key = "service.name", .value = "shop"};
  const Label team = {.key = "team", .value = "a"};
  EXPECT_THAT(ParseEnvironment(block, kBoth).labels,
              ElementsAre(service, team));
  EXPECT_THAT(ParseEnvironment(block, {.service_name = true}).labels,
              ElementsAre(service));
  EXPECT_THAT(ParseEnvironment(block, {.resource_attributes = true}).labels,
              ElementsAre(Label{.key = "service.name", .value = "b"}, team));
  EXPECT_THAT(ParseEnvironment(block, {}).labels, IsEmpty());
  EXPECT_THAT(ParseEnvironment("", kBoth).labels, IsEmpty());
  EXPECT_THAT(ParseEnvironment(Block({"OTEL_SERVICE_NAME="}), kBoth).labels,
              IsEmpty());
}

// White space around keys and values does not count, and both are decoded.
TEST(EnvironmentTextTest, DecodesAttributes) {
  EXPECT_THAT(ParseAttributes(" a = b ,\tc.d=%20e%2Cf%3d%c3%A4,,g=h=i,").labels,
              ElementsAre(Label{.key = "a", .value = "b"},
                          Label{.key = "c.d", .value = " e,f=\u00e4"},
                          Label{.key = "g", .value = "h=i"}));
  EXPECT_THAT(ParseAttributes("%61=1,b=").labels,
              ElementsAre(Label{.key = "a", .value = "1"}));
}

// A list with one mistake is left out as a whole; the name beside it stays.
TEST(EnvironmentTextTest, MalformedLists) {
  for (const char* list : {"a", "a=1,b", "=1", " =1", "a=%", "a=%4", "a=%zz",
                           "a=1,%=2", "a=%+1"}) {
    const EnvironmentLabels found = ParseEnvironment(
        Block({"OTEL_SERVICE_NAME=s",
               "OTEL_RESOURCE_ATTRIBUTES=" + std::string(list)}),
        kBoth);
    EXPECT_TRUE(found.is_malformed) << list;
    EXPECT_THAT(found.labels, SizeIs(1)) << list;
  }
}

// Nobody says by an environment which pod or process it is.
TEST(EnvironmentTextTest, RefusesOwnKeys) {
  const EnvironmentLabels found = ParseAttributes(
      "k8s.pod.name=vault,container.name=a,pid=1,comm=b,host.name=c,"
      "self=yes,team=d,a%22b=e,x%0Ay=f");
  EXPECT_THAT(found.labels, ElementsAre(Label{.key = "team", .value = "d"}));
  EXPECT_EQ(found.refused, 8u);
  EXPECT_FALSE(found.is_malformed);
}

// Keys, values and their number end at bounds, and at these are taken.
TEST(EnvironmentTextTest, Bounds) {
  const std::string key(kMaxEnvironmentKeyBytes, 'k');
  const std::string value(kMaxEnvironmentValueBytes, 'v');
  EXPECT_THAT(ParseAttributes(key + "=" + value).labels,
              ElementsAre(Label{.key = key, .value = value}));
  EXPECT_THAT(ParseAttributes(key + "k=" + value).labels, IsEmpty());
  EXPECT_THAT(ParseAttributes(key + "=" + value + "v").labels, IsEmpty());
  std::string list;
  for (size_t i = 0; i <= kMaxEnvironmentLabels; ++i) {
    list += "a" + std::to_string(i) + "=1,";
  }
  const EnvironmentLabels found = ParseAttributes(list);
  EXPECT_THAT(found.labels, SizeIs(kMaxEnvironmentLabels));
  EXPECT_EQ(found.refused, 1u);
}

// A process that lives is read; one that had its pid before it is gone.
TEST(EnvironmentReaderTest, ReadsAProcess) {
  RunningCat cat({"OTEL_SERVICE_NAME=shop"});
  ProcessEnvironment found = ReadEnvironment(cat.process(), kBoth);
  EXPECT_EQ(found.result, EnvironmentResult::kRead);
  EXPECT_THAT(found.labels,
              ElementsAre(Label{.key = "service.name", .value = "shop"}));
  ksym::ProcessId other = cat.process();
  other.start_ns += kNsPerSecond;
  found = ReadEnvironment(other, kBoth);
  EXPECT_EQ(found.result, EnvironmentResult::kGone);
  EXPECT_THAT(found.labels, IsEmpty());
  cat.End();
  EXPECT_EQ(ReadEnvironment(cat.process(), kBoth).result,
            EnvironmentResult::kGone);
}

}  // namespace
}  // namespace profd
