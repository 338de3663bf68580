#include "daemon/capture/side_band.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "daemon/capture/module_uevents.h"

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

// A program that is loaded, with all its fields.
TEST(SideBandTest, ParsesAnAddedSymbol) {
  const auto event = ParseSideBandRecord(SymbolRecord(0));
  ASSERT_TRUE(event);
  EXPECT_EQ(*event, (SideBandEvent{.kind = SideBandEvent::Kind::kSymbolAdded,
                                   .time_ns = 777,
                                   .address = 0xffffffffc0001000,
                                   .size = 0x123,
                                   .name = "bpf_prog_0123456789abcdef_name",
                                   .is_bpf = true,
                                   .lost = 0}));
}

// The flag tells one that goes.
TEST(SideBandTest, ParsesARemovedSymbol) {
  const auto event =
      ParseSideBandRecord(SymbolRecord(PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, SideBandEvent::Kind::kSymbolRemoved);
}

// Lost records are reported with their number.
TEST(SideBandTest, ParsesLostRecords) {
  const auto event = ParseSideBandRecord(
      RecordBuilder()
          .Add(
              perf_event_header{.type = PERF_RECORD_LOST, .misc = 0, .size = 0})
          .Add(uint64_t{1})
          .Add(uint64_t{42})
          .Add(uint64_t{0})
          .Add(uint64_t{5})
          .Finish());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, SideBandEvent::Kind::kLost);
  EXPECT_EQ(event->lost, 42u);
}

// Other types, and records that are cut off before their fixed part's end, are
// nothing.
TEST(SideBandTest, IgnoresOtherAndShortRecords) {
  const std::vector<std::byte> record = SymbolRecord(0);
  constexpr size_t kFixedBytes = 8 + 16 + 16;
  for (size_t size = 0; size < kFixedBytes; ++size) {
    EXPECT_FALSE(ParseSideBandRecord(std::span(record).first(size))) << size;
  }
  std::vector<std::byte> other = record;
  other[0] = std::byte{PERF_RECORD_FORK};
  EXPECT_FALSE(ParseSideBandRecord(other));
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
