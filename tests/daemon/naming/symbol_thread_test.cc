// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/symbol_thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <utility>

#include "ksym/process/process_image.h"

// Known to this program's symbol table, and large enough that the byte after
// the call is within it.
extern "C" __attribute__((noinline)) int SymbolThreadMarker(int value) {
  asm volatile("" : "+r"(value));
  return value + 1;
}

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

const uint64_t kMarker = reinterpret_cast<uint64_t>(&SymbolThreadMarker);

ksym::ProcessId Self() {
  return {
      .pid = static_cast<uint32_t>(::getpid()), .exec_count = 1, .start_ns = 1};
}

ksym::ProcessImage OwnImage() {
  auto mappings = ksym::ReadMaps(Self().pid);
  EXPECT_TRUE(mappings);
  return {.id = Self(), .mappings = std::move(*mappings)};
}

// One sample of this process: in the marker, called from the marker.
std::shared_ptr<RawProfile> OwnPart() {
  auto part = std::make_shared<RawProfile>();
  RawSample sample;
  sample.process = Self();
  sample.user_stack = kFirstStackId;
  sample.count = 1;
  part->samples.push_back(sample);
  part->stacks.Add(kFirstStackId, RawStack{.frames = {kMarker, kMarker + 1}});
  part->images[Self()] = OwnImage();
  return part;
}

// Each address of a stack is there once, the callers' in their calls.
TEST(UserLookupsTest, HasEachAddressOnce) {
  const UserLookups lookups(OwnPart());
  EXPECT_EQ(lookups.size(), 1u);
  EXPECT_EQ(lookups.Files().size(), 1u);
  EXPECT_FALSE(lookups.is_done());
}

// What is not of the part has no answer, and neither has what comes too late;
// both say of which file they are.
TEST(UserLookupsTest, WhatIsNotNamedSaysSo) {
  const auto part = OwnPart();
  UserLookups lookups(part);
  const ksym::ProcessImage& image = part->images.begin()->second;
  for (const ksym::Address address :
       {ksym::Address{kMarker}, ksym::Address{kMarker + 1}}) {
    const ksym::UserSymbol late = lookups.Find(image, address);
    EXPECT_EQ(late.reason, ksym::Unresolved::kNotInTime);
    EXPECT_EQ(late.module, image.Find(address)->path);
    EXPECT_TRUE(late.name.empty());
  }
  ksym::Symbolizer symbolizer{ksym::SymbolizerOptions()};
  EXPECT_TRUE(lookups.NameNext(symbolizer));
  EXPECT_FALSE(lookups.NameNext(symbolizer));
  EXPECT_EQ(lookups.Find(image, {kMarker}).name, "SymbolThreadMarker");
  EXPECT_EQ(lookups.Find(image, {kMarker + 1}).reason,
            ksym::Unresolved::kNotInTime);
}

// A part without user samples has nothing to wait for.
TEST(UserLookupsTest, NothingIsDoneAtOnce) {
  UserLookups lookups(std::make_shared<RawProfile>());
  EXPECT_TRUE(lookups.is_done());
  EXPECT_TRUE(lookups.Files().empty());
}

// What is asked for is named, and the symbolizer is the caller's afterwards.
TEST(SymbolThreadTest, NamesWhatItIsAsked) {
  SymbolThread symbols({}, {});
  EXPECT_NE(symbols.symbolizer(), nullptr);
  const auto part = OwnPart();
  symbols.Pin(OwnImage());
  const auto lookups = symbols.Ask(part);
  ASSERT_TRUE(symbols.WaitUntil(Clock::now() + seconds(60)));
  EXPECT_TRUE(lookups->is_done());
  EXPECT_EQ(lookups->Find(part->images.begin()->second, {kMarker}).name,
            "SymbolThreadMarker");
  EXPECT_EQ(symbols.progress().files, 1u);
  EXPECT_EQ(symbols.progress().of_files, 1u);
  ASSERT_NE(symbols.symbolizer(), nullptr);
  EXPECT_EQ(symbols.symbolizer()->statistics().files_loaded, 1u);
}

// Ending without a wait has everything named first.
TEST(SymbolThreadTest, EndsWhenAllIsDone) {
  const auto part = OwnPart();
  std::shared_ptr<UserLookups> lookups;
  {
    SymbolThread symbols({}, {});
    lookups = symbols.Ask(part);
  }
  EXPECT_TRUE(lookups->is_done());
}

// A thread that hangs holds nobody up: it is waited for until the deadline and
// can be given up, and what it was to name has a reason.
TEST(SymbolThreadTest, AHangCanBeGivenUp) {
  // The thread's as well, which outlives the test.
  const auto hang = std::make_shared<std::latch>(1);
  const auto part = OwnPart();
  const auto begin = Clock::now();
  std::shared_ptr<UserLookups> lookups;
  {
    SymbolThread symbols({},
                         [hang](const ksym::ProcessImage&) { hang->wait(); });
    symbols.Pin(OwnImage());
    lookups = symbols.Ask(part);
    EXPECT_FALSE(symbols.WaitUntil(Clock::now() + milliseconds(50)));
    EXPECT_EQ(symbols.symbolizer(), nullptr);
    EXPECT_EQ(symbols.progress().files, 0u);
    EXPECT_EQ(symbols.progress().of_files, 1u);
    symbols.GiveUp();
    EXPECT_EQ(symbols.symbolizer(), nullptr);
    // Nothing is waited for any more, and nothing may be lost for that.
    symbols.Pin(OwnImage());
    EXPECT_FALSE(symbols.Ask(OwnPart())->is_done());
    EXPECT_FALSE(symbols.WaitUntil(Clock::now() + seconds(60)));
  }
  EXPECT_LT(Clock::now() - begin, seconds(30));
  EXPECT_EQ(lookups->Find(part->images.begin()->second, {kMarker}).reason,
            ksym::Unresolved::kNotInTime);
  hang->count_down();
}

// More images than can wait are counted, and never waited for.
TEST(SymbolThreadTest, ImagesBeyondTheBoundAreCounted) {
  std::latch hang(1);
  std::latch hangs(1);
  std::atomic<bool> is_first = true;
  {
    SymbolThread symbols({}, [&](const ksym::ProcessImage&) {
      if (!is_first.exchange(false)) return;
      hangs.count_down();
      hang.wait();
    });
    symbols.Pin({});
    hangs.wait();
    for (size_t i = 0; i < SymbolThread::kMaxImages; ++i) symbols.Pin({});
    EXPECT_EQ(symbols.images_dropped(), 0u);
    symbols.Pin({});
    EXPECT_EQ(symbols.images_dropped(), 1u);
    hang.count_down();
  }
}

// A signal to the process comes to the thread that waits for it.
TEST(SymbolThreadTest, TakesNoSignals) {
  sigset_t blocked;
  SymbolThread symbols({}, [&](const ksym::ProcessImage&) {
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  });
  symbols.Pin({});
  ASSERT_TRUE(symbols.WaitUntil(Clock::now() + seconds(60)));
  EXPECT_EQ(::sigismember(&blocked, SIGINT), 1);
  EXPECT_EQ(::sigismember(&blocked, SIGTERM), 1);
  sigset_t own;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(::sigismember(&own, SIGINT), 0);
}

}  // namespace
}  // namespace profd
