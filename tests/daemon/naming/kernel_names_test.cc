// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/kernel_names.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

namespace profd {
namespace {

RawProfile Stale() {
  RawProfile interval;
  interval.kernel_table_stale = true;
  return interval;
}

// Recorded changes of an interval are answered for, and forgotten after it.
TEST(KernelNamesTest, FollowsRecordedChanges) {
  auto names = KernelNames::OfRunningKernel();
  if (names.timeline() == nullptr) GTEST_SKIP() << names.warning();
  RawProfile interval;
  interval.kernel_changes = {{ksym::KernelSymbolChange::Kind::kAdded,
                              ksym::Address{0xfffffffffff00000}, 0x100,
                              "bpf_prog_0123456789abcdef_recorded", "bpf"},
                             {ksym::KernelSymbolChange::Kind::kRemoved,
                              ksym::Address{0xfffffffffff00000}, 0x100,
                              "bpf_prog_0123456789abcdef_recorded", "bpf"}};
  names.BeginInterval(interval);
  ksym::SymbolNameBuffer buffer;
  const auto found =
      names.timeline()->Find(ksym::Address{0xfffffffffff000ff}, buffer);
  ASSERT_EQ(found.kind, ksym::KernelTimeline::Answer::Kind::kFound);
  EXPECT_EQ(found.symbol.name, "bpf_prog_0123456789abcdef_recorded");
  names.EndInterval();
  EXPECT_EQ(
      names.timeline()->Find(ksym::Address{0xfffffffffff000ff}, buffer).kind,
      ksym::KernelTimeline::Answer::Kind::kNone);
  EXPECT_EQ(names.statistics().changes, 2u);
  EXPECT_EQ(names.statistics().snapshots, 1u);
}

// A storm of module loads has the table read once a second, not once each.
TEST(KernelNamesTest, ReadsTheTableAtMostOnceASecond) {
  auto names = KernelNames::OfRunningKernel();
  if (names.timeline() == nullptr) GTEST_SKIP() << names.warning();
  for (int i = 0; i < 100; ++i) {
    names.BeginInterval(Stale());
    names.EndInterval();
  }
  EXPECT_LE(names.statistics().snapshots, 2u);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const uint64_t before = names.statistics().snapshots;
  // The wish is not forgotten while it has to wait.
  names.BeginInterval({});
  names.EndInterval();
  EXPECT_EQ(names.statistics().snapshots, before + 1);
  names.BeginInterval({});
  EXPECT_EQ(names.statistics().snapshots, before + 1);
}

// What a module changes is put off until the table may be read again, and no
// longer; the last interval and a program that ends do not wait.
TEST(KernelNamesTest, PutsOffWhatTheTableLacks) {
  std::stop_source end;
  auto names = KernelNames::OfRunningKernel({.make_stream = ReadAhead::Start,
                                             .give_up_first = {},
                                             .give_up_later = end.get_token()});
  if (names.timeline() == nullptr) GTEST_SKIP() << names.warning();
  EXPECT_EQ(names.PutOff({}), std::nullopt);
  const auto until = names.PutOff(Stale());
  ASSERT_TRUE(until);
  const auto wait = *until - std::chrono::steady_clock::now();
  EXPECT_GT(wait, std::chrono::milliseconds(500));
  EXPECT_LE(wait, std::chrono::seconds(1));
  names.ReadWithoutPause();
  EXPECT_EQ(names.PutOff(Stale()), std::nullopt);
  names.BeginInterval(Stale());
  EXPECT_EQ(names.statistics().snapshots, 2u);
  EXPECT_TRUE(names.PutOff(Stale()));
  end.request_stop();
  EXPECT_EQ(names.PutOff(Stale()), std::nullopt);
}

// A kernel that takes too long to list its symbols did not give wrong ones.
TEST(KernelNamesTest, SaysThatTheTableWasNotReadInTime) {
  std::stop_source end;
  end.request_stop();
  const auto names =
      KernelNames::OfRunningKernel({.make_stream = ReadAhead::Start,
                                    .give_up_first = end.get_token(),
                                    .give_up_later = {}});
  if (names.state() == KernelSymbolsState::kNoPermission) {
    GTEST_SKIP() << names.warning();
  }
  EXPECT_EQ(names.timeline(), nullptr);
  EXPECT_EQ(names.state(), KernelSymbolsState::kNotInTime);
  EXPECT_NE(names.warning(), "");

  // A capture of it says the same elsewhere.
  RawCapture capture;
  capture.kernel_symbols_state = names.state();
  EXPECT_EQ(KernelNames::OfCapture(capture).state(),
            KernelSymbolsState::kNotInTime);
}

}  // namespace
}  // namespace profd
