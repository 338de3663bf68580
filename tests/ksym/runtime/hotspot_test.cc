// SPDX-License-Identifier: Apache-2.0
// A JVM's tables and methods in made memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/hotspot/method.h"

namespace ksym {
namespace {

constexpr uint64_t kJvmBegin = 0x10000;
constexpr size_t kJvmBytes = 0x8000;
constexpr uint64_t kLoadBias = 0x10000;
constexpr uint64_t kStructs = 0x11000;
constexpr uint64_t kTypes = 0x13000;
constexpr uint64_t kTexts = 0x14000;
constexpr uint64_t kObjects = 0x16000;
constexpr uint64_t kHeapsVariable = 0x17000;
constexpr uint64_t kInterpreterVariable = 0x17008;
constexpr uint64_t kStructStride = 48;
constexpr uint64_t kTypeStride = 40;

// The offsets of JDK 17, of which the tables below are made.
const std::vector<std::pair<std::string, uint64_t>> kFields = {
    {"GrowableArrayBase::_len", 0},
    {"GrowableArray<int>::_data", 8},
    {"VirtualSpace::_low", 16},
    {"VirtualSpace::_low_boundary", 0},
    {"VirtualSpace::_high_boundary", 8},
    {"CodeHeap::_memory", 8},
    {"CodeHeap::_segmap", 120},
    {"CodeHeap::_log2_segment_size", 256},
    {"CodeBlob::_name", 96},
    {"CodeBlob::_size", 12},
    {"CodeBlob::_frame_size", 28},
    {"CodeBlob::_frame_complete_offset", 20},
    {"CodeBlob::_code_begin", 32},
    {"CodeBlob::_code_end", 40},
    {"CompiledMethod::_method", 112},
    {"nmethod::_compile_id", 304},
    {"Method::_constMethod", 8},
    {"ConstMethod::_constants", 8},
    {"ConstMethod::_name_index", 34},
    {"ConstMethod::_code_size", 32},
    {"ConstantPool::_length", 60},
    {"ConstantPool::_pool_holder", 24},
    {"Klass::_name", 24},
    {"Symbol::_length", 4},
    {"Symbol::_body", 6},
};

class HotspotTest : public testing::Test {
 protected:
  HotspotTest() : bytes_(kJvmBytes) {
    const std::vector<uint64_t> variables = {
        kStructs, kTypes, kStructStride, 0, 8, 32, 40, kTypeStride, 0, 32};
    for (size_t i = 0; i < variables.size(); ++i) {
      Set(kJvmBegin + 8 * i, variables[i]);
    }
    for (const auto& [name, offset] : kFields) AddField(name, offset, 0);
    AddField("CodeCache::_heaps", 0, kHeapsVariable);
    AddField("AbstractInterpreter::_code", 0, kInterpreterVariable);
    AddType("HeapBlock", 16);
    AddType("ConstMethod", 56);
    AddType("ConstantPool", 72);
    memory_.Add({kJvmBegin}, bytes_);
  }

  template <typename T>
  void Set(uint64_t address, T value) {
    std::memcpy(&bytes_.at(address - kJvmBegin), &value, sizeof(value));
  }
  uint64_t PutText(std::string_view text) {
    const uint64_t at = texts_;
    for (const char c : text) Set(texts_++, c);
    Set(texts_++, '\0');
    return at;
  }
  void AddField(const std::string& name, uint64_t offset, uint64_t address) {
    const size_t colons = name.find("::");
    const uint64_t entry = kStructs + kStructStride * fields_++;
    Set(entry, PutText(name.substr(0, colons)));
    Set(entry + 8, PutText(name.substr(colons + 2)));
    Set(entry + 32, offset);
    Set(entry + 40, address);
  }
  void AddType(std::string_view name, uint64_t size) {
    const uint64_t entry = kTypes + kTypeStride * types_++;
    Set(entry, PutText(name));
    Set(entry + 32, size);
  }
  void PutSymbol(uint64_t at, std::string_view text) {
    Set(at + 4, static_cast<uint16_t>(text.size()));
    for (size_t i = 0; i < text.size(); ++i) Set(at + 6 + i, text[i]);
  }
  // A Method at kObjects, whose name is the second constant.
  void PutMethod(std::string_view class_name, std::string_view name) {
    constexpr uint64_t kConstMethod = kObjects + 0x100;
    constexpr uint64_t kConstants = kObjects + 0x200;
    constexpr uint64_t kHolder = kObjects + 0x300;
    Set(kObjects + 8, kConstMethod);
    Set(kConstMethod + 8, kConstants);
    Set(kConstMethod + 34, uint16_t{2});
    Set(kConstants + 60, int32_t{3});
    Set(kConstants + 24, kHolder);
    Set(kConstants + 72 + 16, kObjects + 0x401);
    Set(kHolder + 24, kObjects + 0x500);
    PutSymbol(kObjects + 0x400, name);
    PutSymbol(kObjects + 0x500, class_name);
  }

  std::optional<std::string> NameOf(const HotspotLayout& layout,
                                    Address address) const {
    const auto identity = ReadHotspotMethodIdentity(memory_, layout, address);
    if (!identity) return std::nullopt;
    auto method = ReadHotspotMethod(memory_, layout, *identity);
    if (!method) return std::nullopt;
    return std::move(method->name);
  }

  Result<HotspotLayout> Layout() const {
    HotspotLibrary library;
    uint64_t at = 0;
    for (ElfAddress* place :
         {&library.structs, &library.types, &library.struct_stride,
          &library.struct_type_name, &library.struct_field_name,
          &library.struct_offset, &library.struct_address, &library.type_stride,
          &library.type_name, &library.type_size}) {
      place->value = at;
      at += 8;
    }
    return ReadHotspotLayout(memory_, library, kLoadBias);
  }

  std::vector<std::byte> bytes_;
  PieceMemory memory_;
  uint64_t texts_ = kTexts;
  uint64_t fields_ = 0;
  uint64_t types_ = 0;
};

TEST_F(HotspotTest, ReadsTables) {
  const auto layout = Layout();
  ASSERT_TRUE(layout) << layout.error().message();
  EXPECT_EQ(layout->heaps, kHeapsVariable - kLoadBias);
  EXPECT_EQ(layout->blob_frame_size, 28);
  EXPECT_EQ(layout->nmethod_method, 112);
  EXPECT_EQ(layout->block_bytes, 16);
  EXPECT_FALSE(layout->code_is_offset);
}

// Without them there are no lines and no inlined methods.
TEST_F(HotspotTest, ReadsWhereScopesAre) {
  auto layout = Layout();
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->scopes, HotspotLayout::Scopes::kNone);
  EXPECT_EQ(layout->const_method_flags, 0);
  constexpr uint64_t kVersion = kObjects + 0x700;
  AddField("Abstract_VM_Version::_vm_major_version", 0, kVersion);
  AddField("nmethod::_scopes_pcs_offset", 268, 0);
  AddField("nmethod::_dependencies_offset", 272, 0);
  AddField("nmethod::_metadata_offset", 260, 0);
  AddField("CompiledMethod::_scopes_data_begin", 120, 0);
  AddField("ConstMethod::_flags", 28, 0);
  AddField("ConstMethod::_constMethod_size", 24, 0);
  AddField("nmethod::_orig_pc_offset", 300, 0);
  AddField("CompiledMethod::_deopt_handler_begin", 128, 0);
  Set(kVersion, int32_t{17});
  layout = Layout();
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->scopes, HotspotLayout::Scopes::kByAddress);
  EXPECT_EQ(layout->nmethod_pcs, 268);
  EXPECT_EQ(layout->numbers, HotspotNumbers::kAnyByte);
  EXPECT_EQ(layout->const_method_flags, 28);
  EXPECT_EQ(layout->nmethod_deopt, 128);
  EXPECT_FALSE(layout->deopt_is_offset);
  EXPECT_EQ(layout->interpreter_bcp, 64);
  Set(kVersion, int32_t{21});
  layout = Layout();
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->numbers, HotspotNumbers::kNoZero);
}

// In JDK 23 and 24 the scopes are in memory of their own, and in JDK 25 the
// methods that they name are so as well.
TEST_F(HotspotTest, ReadsWhereScopesAreOutOfCode) {
  constexpr uint64_t kVersion = kObjects + 0x700;
  AddField("Abstract_VM_Version::_vm_major_version", 0, kVersion);
  AddField("nmethod::_scopes_pcs_offset", 188, 0);
  AddField("nmethod::_scopes_data_offset", 192, 0);
  AddField("nmethod::_immutable_data", 88, 0);
  AddField("nmethod::_immutable_data_size", 152, 0);
  AddField("nmethod::_metadata_offset", 180, 0);
  Set(kVersion, int32_t{24});
  auto layout = Layout();
  ASSERT_TRUE(layout);
  // Without an end of the code there is no place that the offset is from.
  EXPECT_EQ(layout->scopes, HotspotLayout::Scopes::kNone);
  AddField("CodeBlob::_data_offset", 40, 0);
  layout = Layout();
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->scopes, HotspotLayout::Scopes::kMethodsInBlob);
  EXPECT_EQ(layout->nmethod_pcs, 188);
  EXPECT_EQ(layout->nmethod_scopes, 192);
  EXPECT_EQ(layout->nmethod_immutable, 88);
  EXPECT_EQ(layout->nmethod_immutable_size, 152);
  EXPECT_EQ(layout->nmethod_methods, 180);
  EXPECT_EQ(layout->numbers, HotspotNumbers::kNoZero);
  AddField("CodeBlob::_mutable_data", 16, 0);
  AddField("CodeBlob::_mutable_data_size", 48, 0);
  AddField("CodeBlob::_relocation_size", 28, 0);
  layout = Layout();
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->scopes, HotspotLayout::Scopes::kOutOfBlob);
  EXPECT_EQ(layout->blob_mutable, 16);
}

// JDK 8 has one heap, and no array.
TEST_F(HotspotTest, KnowsTheOneHeapOfJdk8) {
  // In place of the array's fields and CodeCache::_heaps.
  const auto rename = [&](uint64_t entry, std::string_view type,
                          std::string_view field) {
    Set(kStructs + kStructStride * entry, PutText(type));
    Set(kStructs + kStructStride * entry + 8, PutText(field));
  };
  rename(0, "None", "none");
  rename(1, "None", "none");
  rename(kFields.size(), "CodeCache", "_heap");
  const auto layout = Layout();
  ASSERT_TRUE(layout) << layout.error().message();
  EXPECT_TRUE(layout->has_one_heap);
  EXPECT_EQ(layout->interpreter_bcp, 56);
  constexpr uint64_t kHeap = kObjects + 0x100;
  Set(kHeapsVariable, kHeap);
  Set(kInterpreterVariable, kHeap);
  Set(kHeap + 8, uint64_t{0x700000});
  Set(kHeap + 16, uint64_t{0x780000});
  Set(kHeap + 120 + 16, uint64_t{0x900000});
  Set(kHeap + 256, int32_t{7});
  const auto heaps = ReadHotspotHeaps(memory_, *layout, kLoadBias);
  ASSERT_TRUE(heaps) << heaps.error().message();
  ASSERT_EQ(heaps->size(), 1u);
  EXPECT_EQ(heaps->front().end.value, 0x780000u);
}

// What is missing is named, and what cannot be is refused.
TEST_F(HotspotTest, RefusesOtherTables) {
  Set(kStructs + 10 * kStructStride, PutText("Other"));
  auto layout = Layout();
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(layout.error().message(),
              testing::HasSubstr("CodeBlob::_frame_size"));
  Set(kStructs + 9 * kStructStride + 32, uint64_t{100000});
  layout = Layout();
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code(), ErrorCode::kCorrupt);
}

// Before the loader is done the variables are 0.
TEST_F(HotspotTest, RefusesEntriesWithoutSize) {
  Set(kJvmBegin + 16, uint64_t{0});
  const auto layout = Layout();
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code(), ErrorCode::kCorrupt);
}

TEST_F(HotspotTest, RefusesTablesWithoutAnEnd) {
  for (uint64_t at = kStructs + kStructStride * fields_;
       at < kJvmBegin + kJvmBytes; at += 8) {
    Set(at, kTexts);
  }
  const auto layout = Layout();
  ASSERT_FALSE(layout);
  EXPECT_THAT(layout.error().message(), testing::HasSubstr("has no end"));
}

TEST_F(HotspotTest, FindsHeapsWhenTheJvmHasStarted) {
  const auto layout = Layout();
  ASSERT_TRUE(layout);
  auto heaps = ReadHotspotHeaps(memory_, *layout, kLoadBias);
  ASSERT_FALSE(heaps);
  EXPECT_EQ(heaps.error().code(), ErrorCode::kNotFound);
  constexpr uint64_t kArray = kObjects;
  constexpr uint64_t kHeap = kObjects + 0x100;
  Set(kHeapsVariable, kArray);
  Set(kInterpreterVariable, kArray);
  Set(kArray, int32_t{1});
  Set(kArray + 8, kObjects + 0x40);
  Set(kObjects + 0x40, kHeap);
  Set(kHeap + 8, uint64_t{0x700000});
  Set(kHeap + 16, uint64_t{0x780000});
  Set(kHeap + 120 + 16, uint64_t{0x900000});
  Set(kHeap + 256, int32_t{7});
  heaps = ReadHotspotHeaps(memory_, *layout, kLoadBias);
  ASSERT_TRUE(heaps) << heaps.error().message();
  ASSERT_EQ(heaps->size(), 1u);
  EXPECT_EQ(heaps->front().begin.value, 0x700000u);
  EXPECT_EQ(heaps->front().end.value, 0x780000u);
  EXPECT_EQ(heaps->front().segments.value, 0x900000u);
  EXPECT_EQ(heaps->front().segment_shift, 7);
  Set(kArray, int32_t{100});
  heaps = ReadHotspotHeaps(memory_, *layout, kLoadBias);
  ASSERT_FALSE(heaps);
  EXPECT_EQ(heaps.error().code(), ErrorCode::kCorrupt);
}

TEST_F(HotspotTest, NamesMethods) {
  const auto layout = Layout();
  ASSERT_TRUE(layout);
  PutMethod("com/example/Server", "handle");
  EXPECT_EQ(NameOf(*layout, {kObjects}), "com.example.Server.handle");
  // An index beyond the constants is no name's.
  Set(kObjects + 0x100 + 34, uint16_t{3});
  EXPECT_EQ(NameOf(*layout, {kObjects}), std::nullopt);
}

TEST_F(HotspotTest, RefusesNamesThatAreNone) {
  const auto layout = Layout();
  ASSERT_TRUE(layout);
  PutMethod("com/example/Server", "a\nb");
  EXPECT_EQ(NameOf(*layout, {kObjects}), std::nullopt);
  EXPECT_EQ(NameOf(*layout, {1}), std::nullopt);
}

TEST_F(HotspotTest, NamesStubs) {
  const auto layout = Layout();
  ASSERT_TRUE(layout);
  Set(kObjects + 96, PutText("StubRoutines (1)"));
  EXPECT_EQ(ReadHotspotBlobName(memory_, *layout, {kObjects}, 64),
            "StubRoutines (1)");
}

TEST(HotspotClassNameTest, IsAsPeopleWriteIt) {
  EXPECT_EQ(HotspotClassName("java/lang/String"), "java.lang.String");
  EXPECT_EQ(HotspotClassName("a/B$$Lambda$14+0x0000000800c031f8"),
            "a.B$$Lambda");
  EXPECT_EQ(HotspotClassName("a/B$$Lambda/0x00007f0001001000"), "a.B$$Lambda");
  EXPECT_EQ(HotspotClassName("java/lang/invoke/LambdaForm$MH+0x0000000800c0"),
            "java.lang.invoke.LambdaForm$MH");
}

// A page is read once, and what is behind the end of one that is cut off is
// not there.
TEST(CachedMemoryTest, KeepsPages) {
  class Counting final : public Memory {
   public:
    size_t ReadSome(Address address, std::span<std::byte> out) const override {
      ++reads;
      std::ranges::fill(out, std::byte{7});
      return address.value == 0x2000 ? 16 : out.size();
    }
    mutable int reads = 0;
  };
  const Counting memory;
  const CachedMemory cached(memory);
  std::array<std::byte, 32> bytes = {};
  EXPECT_EQ(cached.ReadSome({0x1100}, bytes), 32u);
  EXPECT_EQ(cached.ReadSome({0x1200}, bytes), 32u);
  EXPECT_EQ(memory.reads, 1);
  EXPECT_EQ(bytes.front(), std::byte{7});
  EXPECT_EQ(cached.ReadSome({0x1ff0}, bytes), 32u);
  EXPECT_EQ(cached.ReadSome({0x1ff8}, bytes), 24u);
  EXPECT_EQ(memory.reads, 2);
}

}  // namespace
}  // namespace ksym
