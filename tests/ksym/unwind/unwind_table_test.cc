// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/unwind_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/process/vdso.h"
#include "tests/ksym/unwind/describe_row.h"
#include "tests/ksym/unwind/table_of.h"

namespace ksym {
namespace {

using ::testing::ElementsAre;

// The load bias of this program.
uint64_t LoadBias() {
  uint64_t bias = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_addr;
        return 1;  // the program is the first
      },
      &bias);
  return bias;
}

// A library, and what of it is read.
struct Source {
  const char* path;
  enum class Headers { kAll, kNoSections } headers = Headers::kAll;
};

Result<UnwindTable> TableOf(const Source& source) {
  auto bytes = ReadFile(source.path, size_t{4} << 20);
  if (!bytes) return Fail(bytes.error());
  if (source.headers == Source::Headers::kNoSections) {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes->data(), sizeof(header));
    header.e_shoff = 0;
    header.e_shnum = 0;
    header.e_shstrndx = 0;
    std::memcpy(bytes->data(), &header, sizeof(header));
  }
  return TableOf(ByteSource::OfMemory(std::move(*bytes)));
}

// cfi_fixture.s, with its table and its symbols.
class Fixture {
 public:
  explicit Fixture(const Source& source)
      : library_(::dlopen(source.path, RTLD_NOW), ::dlclose),
        table_(TableOf(source)) {}

  const Result<UnwindTable>& table() const { return table_; }

  // What the table says `offset` bytes into a function.
  std::string RowAt(const char* function, uint64_t offset) const {
    void* symbol = library_ ? ::dlsym(library_.get(), function) : nullptr;
    Dl_info info = {};
    if (symbol == nullptr || ::dladdr(symbol, &info) == 0 || !table_) {
      return "no function";
    }
    const auto address = reinterpret_cast<uintptr_t>(symbol) -
                         reinterpret_cast<uintptr_t>(info.dli_fbase);
    return DescribeRow(
        FindUnwindRow(*table_, address + offset - table_->base.value));
  }

  // Its first `count` bytes, one by one.
  std::vector<std::string> Rows(const char* function, uint64_t count) const {
    std::vector<std::string> rows;
    rows.reserve(count);
    for (uint64_t i = 0; i < count; ++i) rows.push_back(RowAt(function, i));
    return rows;
  }

 private:
  std::unique_ptr<void, int (*)(void*)> library_;
  Result<UnwindTable> table_;
};

class UnwindTableTest : public ::testing::TestWithParam<Source> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fixture_.table()) << fixture_.table().error().message();
    ASSERT_EQ(fixture_.table()->counts.bad_fdes, 0u)
        << fixture_.table()->first_problem;
  }
  std::vector<std::string> Rows(const char* function, uint64_t count) const {
    return fixture_.Rows(function, count);
  }
  std::string RowAt(const char* function, uint64_t offset) const {
    return fixture_.RowAt(function, offset);
  }

  Fixture fixture_{GetParam()};
};

// Pushes and pops move the CFA and save RBP and RBX.
TEST_P(UnwindTableTest, FollowsPushesAndPops) {
  EXPECT_THAT(Rows("pushes", 7), ElementsAre("rsp+8", "rsp+16, rbp cfa-16",
                                             "rsp+24, rbp cfa-16, rbx cfa-24",
                                             "rsp+56, rbp cfa-16, rbx cfa-24",
                                             "rsp+24, rbp cfa-16, rbx cfa-24",
                                             "rsp+16, rbp cfa-16", "rsp+8"));
}

// A frame pointer takes over until the epilogue.
TEST_P(UnwindTableTest, FollowsFramePointers) {
  EXPECT_THAT(Rows("frame_pointer", 5),
              ElementsAre("rsp+8", "rsp+16, rbp cfa-16", "rbp+16, rbp cfa-16",
                          "rbp+16, rbp cfa-16, rbx cfa-56",
                          "rsp+8, rbp cfa-16, rbx cfa-56"));
}

// A restored state is the remembered one.
TEST_P(UnwindTableTest, RestoresRememberedStates) {
  EXPECT_THAT(Rows("remembers", 4), ElementsAre("rsp+8", "rsp+24, rbx cfa-24",
                                                "rsp+8", "rsp+24, rbx cfa-24"));
}

// Every size of a location's advance ends where it should.
TEST_P(UnwindTableTest, AdvancesByEverySize) {
  uint64_t at = 0;
  const char* const cfas[] = {"rsp+8", "rsp+16", "rsp+24", "rsp+32"};
  const uint64_t sizes[] = {63, 64, 256, 65536};
  for (size_t i = 0; i < std::size(sizes); ++i) {
    EXPECT_EQ(RowAt("advances", at), cfas[i]);
    at += sizes[i];
    EXPECT_EQ(RowAt("advances", at - 1), cfas[i]);
  }
  EXPECT_EQ(RowAt("advances", at), "rsp+40");
}

// A realigned stack's CFA is in memory, and its RBP at RBP until the epilogue,
// whose rules for it are not to be believed.
TEST_P(UnwindTableTest, KnowsRealignedStacks) {
  EXPECT_THAT(Rows("realigns", 6),
              ElementsAre("rsp+8", "r10+0", "r10+0, rbp rbp+0, rbx lost",
                          "*(rbp-8)+0, rbp rbp+0, rbx lost", "r10+0, lost",
                          "rsp+8, rbx lost"));
}

// Assembly keeps the old RSP in another register, or in its frame.
TEST_P(UnwindTableTest, KnowsSavedStackPointers) {
  EXPECT_THAT(Rows("saves_rsp", 6),
              ElementsAre("rsp+8", "rax+8", "rax+8, rbp cfa-24",
                          "*(rsp+152)+8, rbp cfa-24", "*(rsp+16)+0, rbp cfa-24",
                          "rsp+24, rbp cfa-24"));
}

// A return address may be in a register of the innermost frame, with a CFA by
// RSP.
TEST_P(UnwindTableTest, KnowsReturnRegisters) {
  EXPECT_THAT(Rows("returns_by_rdi", 5),
              ElementsAre("rsp+8", "rsp+0, ra rdi", "rsp+8", "unsupported",
                          "unsupported"));
}

// The linker's expression for its stubs is known by its form.
TEST_P(UnwindTableTest, KnowsLinkageStubs) {
  EXPECT_THAT(Rows("stubs", 2), ElementsAre("plt 11", "plt 9"));
}

// A signal frame is one whatever its instructions say.
TEST_P(UnwindTableTest, KnowsSignalFrames) {
  EXPECT_THAT(Rows("trampoline", 2), ElementsAre("signal", "signal"));
}

// An undefined return address is the stack's end.
TEST_P(UnwindTableTest, KnowsTheOutermostFrame) {
  EXPECT_THAT(Rows("outermost", 2), ElementsAre("rsp+8", "end"));
}

// The CFA may be in RBX.
TEST_P(UnwindTableTest, KnowsFramesByRbx) {
  EXPECT_THAT(Rows("by_rbx", 2),
              ElementsAre("rsp+16, rbx cfa-16", "rbx+16, rbx cfa-16"));
}

// Each relation of RBP and RBX that a row can say is said, the rest are lost.
TEST_P(UnwindTableTest, KnowsWhereRegistersAre) {
  EXPECT_THAT(
      Rows("registers", 10),
      ElementsAre("rsp+8", "rsp+8, rbp cfa-16, rbx cfa-24",
                  "rsp+8, rbp cfa-16, rbx cfa-32",
                  "rsp+8, rbp cfa-16, rbx cfa-88",
                  "rsp+8, rbp cfa-16, rbx lost", "rsp+8, rbp cfa-16, rbx lost",
                  "rsp+8, rbx lost", "rsp+8, lost", "rsp+8, lost", "rsp+8"));
}

// What does not fit a row is unsupported, and its neighbour that does is not.
TEST_P(UnwindTableTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(
      Rows("limits", 11),
      ElementsAre("unsupported", "rsp+262136", "unsupported", "rsp+8, ra rdx",
                  "unsupported", "rsp+8, rbp cfa-1024", "rsp+8, lost",
                  "r11+1016", "unsupported", "unsupported", "unsupported"));
  EXPECT_EQ(fixture_.table()->counts.unsupported_rows, 8u);
}

// Code that nothing describes is unknown, from its first byte to its last;
// padding goes with the function before it.
TEST_P(UnwindTableTest, LeavesGapsUnknown) {
  EXPECT_EQ(RowAt("pushes", 15), "rsp+8");
  EXPECT_EQ(RowAt("bare", 0), "no info");
  EXPECT_EQ(RowAt("bare", 31), "no info");
  EXPECT_EQ(RowAt("last", 0), "rsp+8");
  EXPECT_EQ(RowAt("last", 1), "no info");
}

// Rows are in order, and each says something else than the one before.
TEST_P(UnwindTableTest, RowsAreSortedAndMerged) {
  const UnwindTable& table = *fixture_.table();
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(table.rows.front().pc, 0u);
  for (size_t i = 1; i < table.rows.size(); ++i) {
    UnwindRow same = table.rows[i - 1];
    EXPECT_LT(same.pc, table.rows[i].pc);
    same.pc = table.rows[i].pc;
    EXPECT_NE(same, table.rows[i]) << i;
  }
  EXPECT_LT(table.rows.back().pc, table.size);
  EXPECT_EQ(FindUnwindRow(table, table.size), nullptr);
  EXPECT_EQ(FindUnwindRow(table, table.size - 1), &table.rows.back());
}

INSTANTIATE_TEST_SUITE_P(
    Sections, UnwindTableTest,
    ::testing::Values(Source{KSYM_CFI_EH_FRAME},
                      Source{KSYM_CFI_EH_FRAME, Source::Headers::kNoSections},
                      Source{KSYM_CFI_DEBUG_FRAME},
                      Source{KSYM_CFI_PACKED_DEBUG_FRAME}));

// A personality and an LSDA are skipped. (.debug_frame has neither.)
TEST(UnwindTableEhFrameTest, SkipsPersonalities) {
  const Fixture fixture({KSYM_CFI_EH_FRAME});
  EXPECT_THAT(fixture.Rows("throws", 2), ElementsAre("rsp+8", "rsp+16"));
}

// The kernel's own library has a table, which describes nearly all of it.
TEST(UnwindTableVdsoTest, KnowsTheVdso) {
  const std::string image = OwnVdsoImage();
  if (image.empty()) GTEST_SKIP() << "the kernel gives no vdso";
  const auto table = TableOf(ByteSource::OfMemory(image));
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_EQ(table->counts.bad_fdes, 0u) << table->first_problem;
  EXPECT_GE(table->counts.fdes, 4u);
}

// A program's first function, and the one that threads start in, are outermost.
TEST(UnwindTableStartTest, ProgramsAndThreadsHaveAnEnd) {
  const auto ends = [](const UnwindTable& table) {
    return std::count_if(
        table.rows.begin(), table.rows.end(),
        [](const UnwindRow& row) { return GetCfaKind(row) == CfaKind::kEnd; });
  };
  const auto self = TableOfFile("/proc/self/exe");
  ASSERT_TRUE(self) << self.error().message();
  const uint64_t start = ::getauxval(AT_ENTRY) - LoadBias();
  EXPECT_EQ(DescribeRow(FindUnwindRow(*self, start - self->base.value)), "end");
  const Fixture libc({"/lib/x86_64-linux-gnu/libc.so.6"});
  if (!libc.table()) GTEST_SKIP() << "the C library is elsewhere";
  // clone and clone3, and the start of a context.
  EXPECT_GE(ends(*libc.table()), 2);
}

// Linkage stubs without call-frame information are known by their code.
TEST(UnwindTableStubsTest, KnowsStubsByTheirCode) {
  const Fixture fixture({KSYM_CFI_STUBS});
  EXPECT_EQ(fixture.RowAt("first_stub", 0), "rsp+16");
  EXPECT_EQ(fixture.RowAt("first_stub", 5), "rsp+16");
  EXPECT_EQ(fixture.RowAt("first_stub", 6), "rsp+24");
  EXPECT_EQ(fixture.RowAt("first_stub", 15), "rsp+24");
  EXPECT_EQ(fixture.RowAt("lazy_stub", 0), "plt 11");
  EXPECT_EQ(fixture.RowAt("lazy_stub", 15), "plt 11");
  EXPECT_EQ(fixture.RowAt("plain_stub", 0), "rsp+8");
  EXPECT_EQ(fixture.RowAt("plain_stub", 7), "rsp+8");
}

// mold's first stub pushes twice, and the others not at all.
TEST(UnwindTableStubsTest, KnowsStubsOfMold) {
  const Fixture fixture({KSYM_CFI_MOLD_STUBS});
  EXPECT_EQ(fixture.RowAt("mold_first_stub", 0), "rsp+8");
  EXPECT_EQ(fixture.RowAt("mold_first_stub", 5), "rsp+8");
  EXPECT_EQ(fixture.RowAt("mold_first_stub", 6), "rsp+16");
  EXPECT_EQ(fixture.RowAt("mold_first_stub", 11), "rsp+16");
  EXPECT_EQ(fixture.RowAt("mold_first_stub", 12), "rsp+24");
  EXPECT_EQ(fixture.RowAt("mold_first_stub", 31), "rsp+24");
  EXPECT_EQ(fixture.RowAt("mold_stub", 0), "rsp+8");
  EXPECT_EQ(fixture.RowAt("mold_stub", 15), "rsp+8");
  EXPECT_EQ(fixture.RowAt("mold_plain_stub", 4), "rsp+8");
}

// So is what follows the system call in clone(), up to where threads begin.
TEST(UnwindTableStubsTest, KnowsCloneByItsCode) {
  const Fixture fixture({KSYM_CFI_STUBS});
  EXPECT_EQ(fixture.RowAt("clone_function", 4), "rsp+8");
  EXPECT_EQ(fixture.RowAt("clone_function", 5), "clone rsp+8");
  EXPECT_EQ(fixture.RowAt("clone_function", 7), "clone rsp+8");
  EXPECT_EQ(fixture.RowAt("clone_function", 18), "clone rsp+8");
  EXPECT_EQ(fixture.RowAt("clone_function", 19), "end");
  EXPECT_EQ(fixture.RowAt("aligned_clone_function", 4), "rsp+8");
  EXPECT_EQ(fixture.RowAt("aligned_clone_function", 5), "clone rsp+8");
  EXPECT_EQ(fixture.RowAt("aligned_clone_function", 14), "clone rsp+8");
  EXPECT_EQ(fixture.RowAt("aligned_clone_function", 15), "end");
  EXPECT_EQ(fixture.RowAt("call_function", 0), "no info");
  EXPECT_EQ(fixture.RowAt("call_function", 2), "no info");
}

// Where the functions of makecontext() return to is the end of their stacks.
// A return to its first byte is looked up one before it.
TEST(UnwindTableStubsTest, KnowsTheStartOfContexts) {
  const Fixture fixture({KSYM_CFI_STUBS});
  EXPECT_EQ(fixture.RowAt("before_context", 0), "rsp+8");
  EXPECT_EQ(fixture.RowAt("before_context", 14), "rsp+8");
  EXPECT_EQ(fixture.RowAt("before_context", 15), "end");
  EXPECT_EQ(fixture.RowAt("start_context", 0), "end");
  EXPECT_EQ(fixture.RowAt("start_context", 25), "end");
  EXPECT_EQ(fixture.RowAt("after_context", 0), "rsp+8");
}

// So is what the C library's object files make of .init and .fini.
TEST(UnwindTableStubsTest, KnowsInitByItsCode) {
  const Fixture fixture({KSYM_CFI_STUBS});
  EXPECT_EQ(fixture.RowAt("init_function", 0), "rsp+8");
  EXPECT_EQ(fixture.RowAt("init_function", 7), "rsp+8");
  EXPECT_EQ(fixture.RowAt("init_function", 8), "rsp+16");
  EXPECT_EQ(fixture.RowAt("init_function", 30), "rsp+16");
  EXPECT_EQ(fixture.RowAt("init_function", 31), "rsp+8");
  EXPECT_EQ(fixture.RowAt("fini_function", 0), "no info");
  EXPECT_EQ(fixture.RowAt("fini_function", 9), "no info");
}

// So are those of static programs, all of them.
TEST(UnwindTableStubsTest, KnowsStubsOfStaticPrograms) {
  const Fixture fixture({KSYM_CFI_STATIC_STUBS});
  EXPECT_EQ(fixture.RowAt("static_stub", 0), "rsp+8");
  EXPECT_EQ(fixture.RowAt("static_stub", 31), "rsp+8");
}

// Go programs are left to their frame pointers.
TEST(UnwindTableGoTest, LeavesGoToFramePointers) {
  const Fixture fixture({KSYM_CFI_GO});
  ASSERT_TRUE(fixture.table());
  EXPECT_EQ(fixture.table()->rows, std::vector<UnwindRow>(1));
}

}  // namespace
}  // namespace ksym
