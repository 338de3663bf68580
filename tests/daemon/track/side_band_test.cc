// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/side_band.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/perf/cpu_list.h"
#include "daemon/perf/privileges.h"
#include "daemon/track/module_uevents.h"

namespace profd {
namespace {

class RecordBuilder {
 public:
  template <typename T>
  RecordBuilder& Add(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(value));
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
    return *this;
  }
  RecordBuilder& AddText(std::string_view text, size_t padded_size) {
    const size_t at = bytes_.size();
    bytes_.resize(at + padded_size);
    std::memcpy(bytes_.data() + at, text.data(), text.size());
    return *this;
  }
  std::vector<std::byte> Finish() {
    const auto size = static_cast<uint16_t>(bytes_.size());
    std::memcpy(bytes_.data() + offsetof(perf_event_header, size), &size,
                sizeof(size));
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
};

// As kernel 6.18 writes it for a BPF program: header, address, length, type,
// flags, name padded to eight bytes, then pid, tid and time.
std::vector<std::byte> SymbolRecord(uint16_t flags) {
  return RecordBuilder()
      .Add(perf_event_header{.type = PERF_RECORD_KSYMBOL, .misc = 0, .size = 0})
      .Add(uint64_t{0xffffffffc0001000})
      .Add(uint32_t{0x123})
      .Add(uint16_t{PERF_RECORD_KSYMBOL_TYPE_BPF})
      .Add(flags)
      .AddText("bpf_prog_0123456789abcdef_name", 32)
      .Add(uint64_t{0})
      .Add(uint64_t{777})
      .Finish();
}

template <typename Report>
const Report* As(const SideBandEvent& event) {
  return std::get_if<Report>(&event.report);
}

perf_event_header Header(uint32_t type, uint16_t misc = 0) {
  return {.type = type, .misc = misc, .size = 0};
}

// What sample_id_all appends: pid and tid, time.
std::vector<std::byte> Finish(RecordBuilder& builder, uint64_t time_ns) {
  return builder.Add(uint64_t{0}).Add(time_ns).Finish();
}

// A program that is loaded, with all its fields.
TEST(SideBandTest, ParsesAnAddedSymbol) {
  const SideBandEvent event = ParseSideBandRecord(SymbolRecord(0));
  EXPECT_EQ(event.time_ns, 777u);
  const auto* change = As<ksym::KernelSymbolChange>(event);
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(*change, (ksym::KernelSymbolChange{
                         .kind = ksym::KernelSymbolChange::Kind::kAdded,
                         .start = ksym::Address{0xffffffffc0001000},
                         .size = 0x123,
                         .name = "bpf_prog_0123456789abcdef_name",
                         .module = "bpf"}));
}

// The flag tells one that goes.
TEST(SideBandTest, ParsesARemovedSymbol) {
  const SideBandEvent event =
      ParseSideBandRecord(SymbolRecord(PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER));
  const auto* change = As<ksym::KernelSymbolChange>(event);
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->kind, ksym::KernelSymbolChange::Kind::kRemoved);
}

// Forks and exits name processes; those of threads are none.
TEST(SideBandTest, ParsesForkAndExit) {
  const auto parse = [](uint32_t type, uint32_t parent, uint32_t thread) {
    RecordBuilder builder;
    builder.Add(Header(type))
        .Add(uint32_t{20})  // pid
        .Add(parent)
        .Add(thread)
        .Add(uint32_t{11})  // ptid
        .Add(uint64_t{5});  // time
    return ParseSideBandRecord(Finish(builder, 6));
  };
  const SideBandEvent forked = parse(PERF_RECORD_FORK, 10, 20);
  EXPECT_EQ(forked.time_ns, 6u);
  const auto* fork = As<ForkReport>(forked);
  ASSERT_NE(fork, nullptr);
  EXPECT_EQ(*fork, (ForkReport{.parent = 10, .child = 20}));
  const SideBandEvent exited = parse(PERF_RECORD_EXIT, 10, 20);
  const auto* exit = As<ExitReport>(exited);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(*exit, ExitReport{.pid = 20});
  EXPECT_EQ(parse(PERF_RECORD_FORK, 20, 21).report.index(), 0u);
  EXPECT_EQ(parse(PERF_RECORD_EXIT, 10, 21).report.index(), 0u);
}

// A new command name is an exec only if the kernel says so.
TEST(SideBandTest, TellsExecFromRename) {
  for (const auto misc : {uint16_t{0}, uint16_t{PERF_RECORD_MISC_COMM_EXEC}}) {
    RecordBuilder builder;
    builder.Add(Header(PERF_RECORD_COMM, misc))
        .Add(uint32_t{20})
        .Add(uint32_t{20})
        .AddText("name", 8);
    const SideBandEvent event = ParseSideBandRecord(Finish(builder, 6));
    EXPECT_EQ(As<ExecReport>(event) != nullptr, misc != 0);
  }
}

// A mapping has all its fields; the name of anonymous memory is none.
TEST(SideBandTest, ParsesMappings) {
  for (const char* name : {"/usr/lib/libc.so.6", "//anon"}) {
    RecordBuilder builder;
    builder.Add(Header(PERF_RECORD_MMAP2))
        .Add(uint32_t{20})
        .Add(uint32_t{21})
        .Add(uint64_t{0x7f0000001000})
        .Add(uint64_t{0x2000})
        .Add(uint64_t{0x3000})
        .Add(uint32_t{8})
        .Add(uint32_t{1})
        .Add(uint64_t{1234})
        .Add(uint64_t{99})
        .Add(uint64_t{0x500000002})
        .AddText(name, 24);
    const SideBandEvent event = ParseSideBandRecord(Finish(builder, 6));
    const auto* map = As<MapReport>(event);
    ASSERT_NE(map, nullptr);
    EXPECT_EQ(map->pid, 20u);
    EXPECT_EQ(map->mapping.start, ksym::Address{0x7f0000001000});
    EXPECT_EQ(map->mapping.end, ksym::Address{0x7f0000003000});
    EXPECT_EQ(map->mapping.file_offset, ksym::FileOffset{0x3000});
    EXPECT_EQ(map->mapping.device_major, 8u);
    EXPECT_EQ(map->mapping.device_minor, 1u);
    EXPECT_EQ(map->mapping.inode, 1234u);
    EXPECT_EQ(map->mapping.path, name[1] == '/' ? "" : name);
  }
}

// Lost records are reported with their number.
TEST(SideBandTest, ParsesLostRecords) {
  RecordBuilder builder;
  builder.Add(Header(PERF_RECORD_LOST)).Add(uint64_t{1}).Add(uint64_t{42});
  const SideBandEvent event = ParseSideBandRecord(Finish(builder, 5));
  const auto* lost = As<LostReport>(event);
  ASSERT_NE(lost, nullptr);
  EXPECT_EQ(lost->count, 42u);
}

// Other types, and records that are cut off before their fixed part's end, are
// nothing.
TEST(SideBandTest, IgnoresOtherAndShortRecords) {
  const std::vector<std::byte> record = SymbolRecord(0);
  constexpr size_t kFixedBytes = 8 + 16 + 16;
  for (size_t size = 0; size < kFixedBytes; ++size) {
    EXPECT_EQ(ParseSideBandRecord(std::span(record).first(size)).report.index(),
              0u)
        << size;
  }
  std::vector<std::byte> other = record;
  other[0] = std::byte{PERF_RECORD_THROTTLE};
  EXPECT_EQ(ParseSideBandRecord(other).report.index(), 0u);
}

uint64_t NowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

bool HasForkOf(const std::vector<SideBandEvent>& events, pid_t child) {
  return std::ranges::any_of(events, [&](const SideBandEvent& event) {
    const auto* fork = As<ForkReport>(event);
    return fork != nullptr && fork->child == static_cast<uint32_t>(child);
  });
}

// The kernel's own reports of processes.
class LiveSideBandTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto allowed = CheckCapturePrivileges();
    if (!allowed) GTEST_SKIP() << allowed.error().message();
    const auto online = ReadOnlineCpus();
    ASSERT_TRUE(online.has_value());
    cpus_ = online->size();
    const auto followed = side_band_.Follow(*online);
    ASSERT_TRUE(followed.has_value()) << followed.error().message();
  }

  SideBand side_band_{{.kernel_symbols = false, .processes = true}};
  size_t cpus_ = 0;
};

// A report newer than the time that is asked for waits for the next call, even
// if its ring was read: the rings of other CPUs may lack what came before it.
TEST_F(LiveSideBandTest, KeepsWhatIsTooNew) {
  const uint64_t before_ns = NowNs();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(HasForkOf(side_band_.Read(before_ns), child));

  const uint64_t after_ns = NowNs();
  const std::vector<SideBandEvent> events = side_band_.Read(after_ns);
  EXPECT_TRUE(HasForkOf(events, child));
  for (const SideBandEvent& event : events) {
    EXPECT_GT(event.time_ns, before_ns);
    EXPECT_LE(event.time_ns, after_ns);
  }
  EXPECT_FALSE(HasForkOf(side_band_.Read(NowNs()), child));
}

// The kernel tells of records that did not fit with the next one that does;
// that some may not have is known at once.
TEST_F(LiveSideBandTest, KnowsThatItWasFull) {
  const auto has_lost = [&](bool is_known) {
    const std::vector<SideBandEvent> events = side_band_.Read(NowNs());
    return std::ranges::any_of(events, [=](const SideBandEvent& event) {
      const auto* lost = As<LostReport>(event);
      return lost != nullptr && lost->is_known == is_known;
    });
  };
  EXPECT_FALSE(has_lost(false));
  // Each is a record of 40 bytes and more, on whichever CPU.
  const size_t fills_all = cpus_ * SideBand::kMaxRingBytes / 40;
  for (size_t i = 0; i < fills_all; ++i) ::prctl(PR_SET_NAME, "side_band_test");
  EXPECT_TRUE(has_lost(false));
  // The kernel's own word is of the same loss.
  ::prctl(PR_SET_NAME, "side_band_test");
  const std::vector<SideBandEvent> after = side_band_.Read(NowNs());
  size_t told = 0;
  for (const SideBandEvent& event : after) {
    const auto* lost = As<LostReport>(event);
    if (lost == nullptr) continue;
    EXPECT_TRUE(lost->is_known);
    EXPECT_GT(lost->count, 0u);
    ++told;
  }
  EXPECT_GE(told, 1u);
}

// Only the kernel's messages about modules themselves count.
TEST(ModuleUeventsTest, TellsModules) {
  EXPECT_TRUE(IsModuleUevent("add@/module/zram"));
  EXPECT_TRUE(IsModuleUevent("remove@/module/zram"));
  EXPECT_FALSE(IsModuleUevent("change@/module/zram"));
  EXPECT_FALSE(IsModuleUevent("add@/devices/virtual/block/zram0"));
  EXPECT_FALSE(IsModuleUevent(""));
}

// Nothing is there to read right after it was opened, and that does not block.
TEST(ModuleUeventsTest, DoesNotBlock) {
  auto uevents = ModuleUevents::Open();
  if (!uevents) GTEST_SKIP() << uevents.error().message();
  uevents->ReadChanged();
  SUCCEED();
}

}  // namespace
}  // namespace profd
