// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/naming_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/service/counters.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr uint64_t kKnown = 0xffffffff81000010;
constexpr uint64_t kInModule = 0xffffffffc0000010;
constexpr std::string_view kListing =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T known\n"
    "ffffffff81001000 T _etext\n";
constexpr std::string_view kListingWithModule =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T known\n"
    "ffffffff81001000 T _etext\n"
    "ffffffffc0000000 t in_module\t[some]\n"
    "ffffffffc0001000 t other\t[some]\n";

class TextStream final : public ksym::ByteStream {
 public:
  explicit TextStream(std::string_view text) : rest_(text) {}

  ksym::Result<size_t> Read(std::span<char> out) override {
    const size_t n = rest_.copy(out.data(), out.size());
    rest_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view rest_;
};

// A kernel that takes ten seconds to write its table, a line at a time.
class SlowStream final : public ksym::ByteStream {
 public:
  explicit SlowStream(std::atomic<bool>& begun) : begun_(begun) {}

  ksym::Result<size_t> Read(std::span<char> out) override {
    begun_ = true;
    if (--lines_ < 0) return 0;
    std::this_thread::sleep_for(milliseconds(10));
    return std::string_view("ffffffff81000000 T slow\n")
        .copy(out.data(), out.size());
  }

 private:
  std::atomic<bool>& begun_;
  int lines_ = 1000;
};

// A part with a sample in the kernel.
RawProfile KernelPart(uint64_t address = kKnown) {
  RawProfile part;
  part.accounting.taken = part.accounting.emitted = 1;
  RawSample sample;
  sample.comm = Comm("test");
  sample.count = 1;
  sample.kernel_stack = kFirstStackId;
  part.stacks.Add(kFirstStackId, RawStack{.frames = {address}});
  part.samples.push_back(sample);
  return part;
}

RawProfile StalePart(uint64_t address = kKnown) {
  RawProfile part = KernelPart(address);
  part.kernel_table_stale = true;
  return part;
}

class NamingThreadTest : public testing::Test {
 protected:
  // With what the first readings give; those after them are slow.
  void Start(std::vector<std::string_view> listings) {
    KernelReading reading;
    reading.make_stream = [this, listings = std::move(listings)](
                              int) -> std::unique_ptr<ksym::ByteStream> {
      const size_t number = readings_++;
      if (number < listings.size()) {
        return std::make_unique<TextStream>(listings[number]);
      }
      return std::make_unique<SlowStream>(is_slow_);
    };
    naming_ = std::make_unique<NamingThread>(
        NamingThread::Settings(), counters_,
        NamingThread::Sinks{
            .part = [this](const auto&) { ++parts_; },
            .profile = [this](const auto& profile) { Keep(*profile); }},
        std::move(reading));
  }
  void Keep(const Profile& profile) {
    for (const auto& sample : profile.samples) {
      for (const FrameId frame : profile.Stack(sample.kernel)) {
        names_.emplace_back(profile.String(profile.frames[frame].name));
      }
    }
  }
  template <typename Condition>
  static void WaitFor(const Condition& condition) {
    const auto end = Clock::now() + seconds(30);
    while (!condition() && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(5));
    }
    ASSERT_TRUE(condition());
  }
  // As the service does it.
  bool Finish() { return naming_->Finish(Clock::now() + milliseconds(1700)); }

  ServiceCounters counters_;
  std::atomic<size_t> readings_ = 0;
  std::atomic<int> parts_ = 0;
  std::atomic<bool> is_slow_ = false;
  std::vector<std::string> names_;  // of kernel frames in finished profiles
  std::unique_ptr<NamingThread> naming_;
};

// A reading that is under way at the end is given up, and what is left has the
// names of the table before it.
TEST_F(NamingThreadTest, EndsDuringAnotherReading) {
  Start({kListing});
  naming_->Add(KernelPart(), NamingThread::Edge::kGoOn);
  WaitFor([&] { return parts_ == 1; });
  naming_->Add(StalePart(), NamingThread::Edge::kGoOn);
  WaitFor([&] { return is_slow_.load(); });
  naming_->Add(StalePart(), NamingThread::Edge::kEnd);
  const auto begin = Clock::now();
  EXPECT_TRUE(Finish());
  EXPECT_LT(Clock::now() - begin, milliseconds(500));
  EXPECT_THAT(names_, ElementsAre("known"));
  EXPECT_EQ(counters_.samples_emitted, 3u);
  EXPECT_EQ(readings_, 2u);
}

// The first reading, too, is given up in time for the profile, which then has
// the samples without the kernel's names.
TEST_F(NamingThreadTest, EndsDuringTheFirstReading) {
  Start({});
  WaitFor([&] { return is_slow_.load(); });
  naming_->Add(KernelPart(), NamingThread::Edge::kEnd);
  EXPECT_TRUE(Finish());
  EXPECT_THAT(names_, ElementsAre("[kernel]"));
  EXPECT_EQ(counters_.samples_emitted, 1u);
  EXPECT_EQ(counters_.profiles, 1u);
}

// What was asked for before the end and needs a table is not begun after it.
TEST_F(NamingThreadTest, BeginsNoReadingAtTheEnd) {
  Start({});
  WaitFor([&] { return is_slow_.load(); });
  naming_->Add(StalePart(), NamingThread::Edge::kGoOn);
  NamingThread::Settings others;
  others.demangle = false;
  naming_->Configure(others);
  naming_->Add(StalePart(), NamingThread::Edge::kEnd);
  EXPECT_TRUE(Finish());
  EXPECT_EQ(readings_, 1u);
  EXPECT_EQ(counters_.samples_emitted, 2u);
}

// A module that comes when the table was just read: its samples wait until it
// may be read again, and have names.
TEST_F(NamingThreadTest, WaitsForTheSymbolsOfAModule) {
  Start({kListing, kListingWithModule});
  naming_->Add(KernelPart(), NamingThread::Edge::kGoOn);
  WaitFor([&] { return parts_ == 1; });
  naming_->Add(StalePart(kInModule), NamingThread::Edge::kGoOn);
  naming_->Add(KernelPart(kInModule), NamingThread::Edge::kEnd);
  WaitFor([&] { return counters_.profiles == 1; });
  EXPECT_TRUE(Finish());
  EXPECT_EQ(readings_, 2u);
  EXPECT_THAT(names_, UnorderedElementsAre("known", "in_module"));
  EXPECT_EQ(counters_.samples_emitted, 3u);
}

// A module that goes meanwhile keeps its names in what waits.
TEST_F(NamingThreadTest, AModuleGoesWhileItsSamplesWait) {
  Start({kListingWithModule, kListing});
  naming_->Add(KernelPart(), NamingThread::Edge::kGoOn);
  WaitFor([&] { return parts_ == 1; });
  for (int i = 0; i < 3; ++i) {
    naming_->Add(StalePart(kInModule), NamingThread::Edge::kGoOn);
  }
  naming_->Add(KernelPart(), NamingThread::Edge::kEnd);
  WaitFor([&] { return counters_.profiles == 1; });
  EXPECT_TRUE(Finish());
  EXPECT_EQ(readings_, 2u);
  EXPECT_THAT(names_, UnorderedElementsAre("known", "in_module"));
  EXPECT_EQ(counters_.samples_emitted, 5u);
}

// What waits is of one profile; what comes after its end is of the next one.
TEST_F(NamingThreadTest, KeepsProfilesApartThatWait) {
  Start({kListing, kListingWithModule});
  naming_->Add(KernelPart(), NamingThread::Edge::kGoOn);
  WaitFor([&] { return parts_ == 1; });
  naming_->Add(StalePart(kInModule), NamingThread::Edge::kEnd);
  naming_->Add(StalePart(kInModule), NamingThread::Edge::kGoOn);
  naming_->Add(KernelPart(), NamingThread::Edge::kEnd);
  WaitFor([&] { return counters_.profiles == 2; });
  EXPECT_TRUE(Finish());
  EXPECT_THAT(names_,
              UnorderedElementsAre("known", "in_module", "known", "in_module"));
  EXPECT_EQ(counters_.samples_emitted, 4u);
}

// One reading is enough for all that was taken before it, of any number of
// profiles, and a module that went in the last of them has its names there.
TEST_F(NamingThreadTest, OneReadingForAllThatWaits) {
  Start({kListingWithModule, kListing});
  naming_->Add(KernelPart(), NamingThread::Edge::kGoOn);
  WaitFor([&] { return parts_ == 1; });
  for (int i = 0; i < 5; ++i) {
    naming_->Add(StalePart(kInModule), NamingThread::Edge::kEnd);
  }
  WaitFor([&] { return counters_.profiles == 5; });
  EXPECT_EQ(readings_, 2u);
  // The module is forgotten then.
  naming_->Add(KernelPart(kInModule), NamingThread::Edge::kGoOn);
  naming_->Add(KernelPart(kInModule), NamingThread::Edge::kEnd);
  WaitFor([&] { return counters_.profiles == 6; });
  EXPECT_TRUE(Finish());
  EXPECT_EQ(std::ranges::count(names_, "in_module"), 6);
  EXPECT_EQ(names_.back(), "[unknown]");
}

// The end does not wait: what is not known by then is said to be so.
TEST_F(NamingThreadTest, EndsWhileSamplesWait) {
  Start({kListing, kListingWithModule});
  naming_->Add(KernelPart(), NamingThread::Edge::kGoOn);
  WaitFor([&] { return parts_ == 1; });
  naming_->Add(StalePart(kInModule), NamingThread::Edge::kEnd);
  const auto begin = Clock::now();
  EXPECT_TRUE(Finish());
  EXPECT_LT(Clock::now() - begin, milliseconds(500));
  EXPECT_EQ(readings_, 1u);
  EXPECT_THAT(names_, UnorderedElementsAre("known", "[unknown]"));
  EXPECT_EQ(counters_.samples_emitted, 2u);
}

}  // namespace
}  // namespace profd
