// SPDX-License-Identifier: Apache-2.0
#include "daemon/perf/privileges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using ::testing::HasSubstr;

// Only steps that other kernels do not have keep CAP_PERFMON from opening
// events.
TEST(WhyNoEventsTest, AboveTwo) {
  EXPECT_EQ(WhyNoEvents("2\n"), "");
  EXPECT_EQ(WhyNoEvents("-1\n"), "");
  EXPECT_EQ(WhyNoEvents(""), "");
  EXPECT_EQ(WhyNoEvents("many\n"), "");
  EXPECT_THAT(WhyNoEvents("3\n"), HasSubstr("perf_event_paranoid is 3"));
  EXPECT_THAT(WhyNoEvents("4\n"), HasSubstr("set it to 2"));
}

// The kernel's mode that is in brackets is in force.
TEST(WhyNoProgramTest, Confidentiality) {
  EXPECT_EQ(WhyNoProgram("[none] integrity confidentiality\n"), "");
  EXPECT_EQ(WhyNoProgram("none [integrity] confidentiality\n"), "");
  EXPECT_EQ(WhyNoProgram(""), "");
  EXPECT_THAT(WhyNoProgram("none integrity [confidentiality]\n"),
              HasSubstr("lockdown=confidentiality"));
}

}  // namespace
}  // namespace profd
