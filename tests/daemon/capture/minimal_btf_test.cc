// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/minimal_btf.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "ksym/base/file.h"

namespace profd {
namespace {

constexpr char kKernelBtf[] = "/sys/kernel/btf/vmlinux";

struct BtfDeleter {
  void operator()(btf* object) const { btf__free(object); }
};
using BtfPtr = std::unique_ptr<btf, BtfDeleter>;

// The bit offset of a member, looked for in anonymous members as well: the
// answer that libbpf's own BTF reader leads to.
std::optional<uint32_t> BitOffset(const btf* object, int id,
                                  const std::string& name) {
  const btf_type* type = btf__type_by_id(object, static_cast<uint32_t>(id));
  if (type == nullptr || !btf_is_composite(type)) return std::nullopt;
  for (uint16_t i = 0; i < btf_vlen(type); ++i) {
    const btf_member* member = btf_members(type) + i;
    const std::string found = btf__name_by_offset(object, member->name_off);
    if (found == name) return btf_member_bit_offset(type, i);
    if (!found.empty()) continue;
    const int inner = btf__resolve_type(object, member->type);
    if (const auto within = BitOffset(object, inner, name)) {
      return btf_member_bit_offset(type, i) + *within;
    }
  }
  return std::nullopt;
}

class MinimalBtfTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kKernelBtf, R_OK) != 0) GTEST_SKIP() << "no kernel BTF";
    const WantedTypes wanted = {
        {"task_struct",
         {"pid", "mm", "start_boottime", "self_exec_id", "comm"}},
        {"nsproxy", {"mnt_ns"}},
        {"mnt_namespace", {"ns"}},
        {"ns_common", {"inum"}},
        {"pid", {"level", "numbers"}},  // an array of structs
        {"upid", {"nr"}},
        {"page", {"_refcount", "mapping"}},  // in anonymous unions
        {"there_is_no_such_struct", {"x"}}};
    auto bytes = MinimalKernelBtf(wanted);
    ASSERT_TRUE(bytes) << bytes.error().message();
    bytes_ = std::move(*bytes);
    minimal_.reset(
        btf__new(bytes_.data(), static_cast<uint32_t>(bytes_.size())));
    ASSERT_TRUE(minimal_) << "libbpf does not take it";
    wanted_ = wanted;
    whole_.reset(btf__parse(kKernelBtf, nullptr));
    ASSERT_TRUE(whole_);
  }

  WantedTypes wanted_;
  std::vector<std::byte> bytes_;
  BtfPtr minimal_;
  BtfPtr whole_;
};

// Every member has the offset, and every struct the size, that libbpf finds in
// the whole BTF.
TEST_F(MinimalBtfTest, KeepsOffsetsAndSizes) {
  for (const auto& [name, member] :
       {std::pair("task_struct", "pid"), std::pair("task_struct", "mm"),
        std::pair("task_struct", "start_boottime"),
        std::pair("task_struct", "self_exec_id"),
        std::pair("task_struct", "comm"), std::pair("nsproxy", "mnt_ns"),
        std::pair("mnt_namespace", "ns"), std::pair("ns_common", "inum"),
        std::pair("pid", "numbers"), std::pair("upid", "nr"),
        std::pair("page", "_refcount"), std::pair("page", "mapping")}) {
    const int small =
        btf__find_by_name_kind(minimal_.get(), name, BTF_KIND_STRUCT);
    const int large =
        btf__find_by_name_kind(whole_.get(), name, BTF_KIND_STRUCT);
    ASSERT_GT(small, 0) << name;
    ASSERT_GT(large, 0) << name;
    EXPECT_EQ(btf__resolve_size(minimal_.get(), static_cast<uint32_t>(small)),
              btf__resolve_size(whole_.get(), static_cast<uint32_t>(large)));
    const auto offset = BitOffset(whole_.get(), large, member);
    ASSERT_TRUE(offset) << name << "." << member;
    EXPECT_EQ(BitOffset(minimal_.get(), small, member), offset)
        << name << "." << member;
  }
}

// Where the kernel's BTF cannot be mapped (before 6.16) it is read in blocks,
// with the same result.
TEST_F(MinimalBtfTest, ReadsInBlocksWhatItCannotMap) {
  const auto fd = ksym::OpenForRead(kKernelBtf);
  ASSERT_TRUE(fd);
  const auto bytes = MinimalBtf(fd->get(), wanted_);
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(*bytes, bytes_);
}

// It is small, which is its purpose.
TEST_F(MinimalBtfTest, IsSmall) { EXPECT_LT(bytes_.size(), 4096u); }

// Types and members that nobody wants are not there.
TEST_F(MinimalBtfTest, HasNothingElse) {
  EXPECT_LT(btf__find_by_name_kind(minimal_.get(), "file", BTF_KIND_STRUCT), 0);
  const int task =
      btf__find_by_name_kind(minimal_.get(), "task_struct", BTF_KIND_STRUCT);
  ASSERT_GT(task, 0);
  EXPECT_EQ(BitOffset(minimal_.get(), task, "tgid"), std::nullopt);
}

// A BTF that is cut off anywhere gives an error and never a wrong answer.
TEST_F(MinimalBtfTest, RefusesEveryTruncation) {
  const WantedTypes all = StructsOfObject(bytes_);
  EXPECT_TRUE(all.contains("task_struct"));
  for (size_t size = 0; size < bytes_.size(); ++size) {
    const WantedTypes some = StructsOfObject(std::span(bytes_).first(size));
    EXPECT_TRUE(some.empty()) << size;
  }
}

}  // namespace
}  // namespace profd
