// SPDX-License-Identifier: Apache-2.0
// Source lines of the kernel and of its modules.

#include "tests/daemon/naming/source_lines_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/naming/kernel_debug.h"
#include "daemon/naming/line_builder.h"
#include "ksym/base/file.h"
#include "ksym/elf/code_ranges.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "ksym/kernel/kernel_timeline.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Clock = std::chrono::steady_clock;

// The release of a kernel that nobody runs.
constexpr const char* kNoRelease = "of-no-machine";

// The directories of a machine, and frames of its kernel.
class KernelTest : public SourceLinesTest {
 protected:
  // Puts a file where the machine has it.
  void Install(const char* file, const std::string& path) const {
    const std::filesystem::path target = Root() + path;
    std::filesystem::create_directories(target.parent_path());
    std::filesystem::copy_file(file, target);
  }
  void InstallText(const std::string& path, std::string_view text) const {
    const std::filesystem::path target = Root() + path;
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target) << text;
  }
  void InstallNotes(const std::string& path, std::string_view build_id) const {
    std::string notes("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
    InstallText(path, notes.append(build_id));
  }
  std::string Root() const { return directory_ + "/root"; }

  KernelDebugPlaces Places(const std::string& release) const {
    return {.release = release,
            .build_ids = BuildIdsOfRunningKernel(release, Root()),
            .root = Root()};
  }
  static std::string RunningRelease() {
    utsname name = {};
    EXPECT_EQ(::uname(&name), 0);
    return name.release;
  }

  void SetFrame(std::string_view name, std::string_view module,
                uint64_t file_offset, uint64_t symbol_offset = 0) {
    ProfileBuilder builder;
    const std::vector<FrameId> stack = {
        builder.AddFrame({.name = builder.Intern(name),
                          .object = builder.Intern(module),
                          .kind = &kKernelFrame,
                          .file_offset = file_offset,
                          .symbol_offset = symbol_offset})};
    builder.AddSample({.kernel_state = StackState::kWhole,
                       .kernel = builder.AddStack(stack),
                       .count = 1});
    profile_ = std::move(builder).Finish({});
  }

  // "name file:line", leaf first, with what is installed.
  std::vector<std::string> Found(const KernelDebugPlaces& places,
                                 const ksym::KernelTimeline* kernel = nullptr) {
    LineFiles files(symbolizer_,
                    {.cache_directory = directory_,
                     .deadline = Clock::now() + std::chrono::minutes(1),
                     .kernel = places});
    AddSourceLines(files,
                   {.inlines = kInlines, .lines = kLines, .kernel = kernel},
                   profile_);
    warnings_ = files.Warnings();
    std::vector<std::string> texts;
    for (const FrameId id : profile_.Stack(profile_.samples[0].kernel)) {
      const Frame& frame = profile_.frames[id];
      const std::string_view path = profile_.String(frame.file);
      texts.push_back(std::string(profile_.String(frame.name)) + " " +
                      std::string(path.substr(path.rfind('/') + 1)) + ":" +
                      std::to_string(frame.line));
    }
    return texts;
  }

  std::vector<std::string> warnings_;
};

// A profile of a kernel that is loaded elsewhere than it is linked to.
class KernelLinesTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    Install(kImage, kPath);
    const auto kernel = FindKernelDebugFile(Places(kNoRelease));
    ASSERT_TRUE(kernel) << kernel.error().message();
    EXPECT_EQ(kernel->text, 0xffffffff81000000);
    EXPECT_EQ(kernel->path, Root() + kPath);
    EXPECT_FALSE(kernel->is_same_build);
    const auto made =
        ksym::ConvertElfToGsym(kernel->file.source, {kImage, nullptr}, {});
    ASSERT_TRUE(made);
    const auto file = ksym::GsymFile::Parse(made->bytes);
    ASSERT_TRUE(file);
    ksym::GsymAnswer answer;
    for (uint32_t i = 0; i < file->function_count(); ++i) {
      ASSERT_TRUE(ksym::LookupGsym(*file, file->FunctionStart(i), answer));
      if (answer.frames.back().function == "do_something") {
        offset_ = answer.start.value - kernel->text;
      }
    }
    ASSERT_NE(offset_, 0u);
  }

  static constexpr const char* kImage = KSYM_FAKE_KERNEL;
  static constexpr const char* kPath =
      "/usr/lib/debug/lib/modules/of-no-machine/vmlinux";
  uint64_t offset_ = 0;
};

TEST_F(KernelLinesTest, InlinesAndLines) {
  SetFrame("do_something", "[kernel]", offset_);
  EXPECT_THAT(
      Found(Places(kNoRelease)),
      ElementsAre("inner fake_kernel.c:13", "do_something fake_kernel.c:17"));
  EXPECT_THAT(warnings_, IsEmpty());
}

// The kernel's image is made use of when its builder has made it.
TEST_F(KernelLinesTest, Builder) {
  LineBuilder builder({.cache_directory = directory_});
  LineFiles files(symbolizer_, {.cache_directory = directory_,
                                .deadline = Clock::time_point::max(),
                                .kernel = Places(kNoRelease),
                                .builder = &builder});
  EXPECT_EQ(files.FindKernel(), nullptr);
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  const LineFile* kernel = nullptr;
  while (kernel == nullptr && Clock::now() < deadline) {
    kernel = files.FindKernel();
  }
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->kernel_text, 0xffffffff81000000);
}

// Where the image has another function it is of another build.
TEST_F(KernelLinesTest, AnotherBuild) {
  SetFrame("do_another_thing", "[kernel]", offset_);
  EXPECT_THAT(Found(Places(kNoRelease)), ElementsAre("do_another_thing :0"));
}

TEST_F(KernelLinesTest, NoImage) {
  SetFrame("do_something", "[kernel]", offset_);
  EXPECT_THAT(Found(Places("of-another-machine")),
              ElementsAre("do_something :0"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("[kernel]")));
}

// The running kernel tells its build-id, and only an image that has it serves.
TEST_F(KernelLinesTest, BuildIdOfTheRunningKernel) {
  const std::string release = RunningRelease();
  Install(kImage, "/boot/vmlinux-" + release);
  const auto find = [&](std::string_view build_id) {
    InstallNotes("/sys/kernel/notes", build_id);
    return FindKernelDebugFile(Places(release));
  };
  const auto other = find(std::string(20, 'x'));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ksym::ErrorCode::kInvalid);
  const auto kernel = FindKernelDebugFile(Places(kNoRelease));
  ASSERT_TRUE(kernel);
  const auto image = ksym::ElfImage::Parse(kernel->file.source);
  ASSERT_TRUE(image);
  const auto same = find(image->build_id());
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->is_same_build);
}

// A capture says which build it is of, whatever runs here.
TEST_F(KernelLinesTest, BuildIdOfACapture) {
  auto places = Places(kNoRelease);
  places.build_ids =
      BuildIdsOfCapture({{.name = "[kernel]", .build_id = "abcd"}});
  EXPECT_FALSE(FindKernelDebugFile(places));
  const auto kernel = FindKernelDebugFile(Places(kNoRelease));
  ASSERT_TRUE(kernel);
  places.build_ids =
      BuildIdsOfCapture({{.name = "other", .build_id = "abcd"},
                         {.name = "[kernel]", .build_id = kernel->build_id}});
  const auto same = FindKernelDebugFile(places);
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->is_same_build);
}

// A module whose sections lie apart in the kernel.
class ModuleLinesTest : public KernelTest {
 protected:
  struct Function {
    std::string name;
    uint64_t start = 0;  // in the kernel
    uint64_t place = 0;  // in the file
  };

  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    const auto file = ksym::ReadFile(kModule, size_t{1} << 20);
    ASSERT_TRUE(file);
    source_ = ksym::ByteSource::OfMemory(*file);
    const auto image = ksym::ElfImage::Parse(source_);
    ASSERT_TRUE(image);
    build_id_ = image->build_id();
    ASSERT_EQ(build_id_.size(), 20u);
    InstallNotes("/sys/module/fake_module/notes/.note.gnu.build-id", build_id_);
    ReadFunctions(*image);
    kernel_ = Kernel(0);
  }

  // Each section of code is 16 MiB behind the one before.
  void ReadFunctions(const ksym::ElfImage& image) {
    const auto made = ksym::ConvertElfToGsym(source_, {}, {});
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_TRUE(made->has_dwarf);
    const auto gsym = ksym::GsymFile::Parse(made->bytes);
    ASSERT_TRUE(gsym);
    const ksym::CodeRanges code(image);
    std::map<uint64_t, uint64_t> sections;
    ksym::GsymAnswer answer;
    for (uint32_t i = 0; i < gsym->function_count(); ++i) {
      const uint64_t place = gsym->FunctionStart(i).value;
      ASSERT_TRUE(ksym::LookupGsym(*gsym, {place}, answer));
      const uint64_t section = code.Find(place)->start;
      const uint64_t base =
          sections
              .emplace(section, 0xffffffffc0000000 + (sections.size() << 24))
              .first->second;
      functions_.push_back({std::string(answer.frames.back().function),
                            base + place - section, place});
    }
    EXPECT_GE(sections.size(), 2u);
  }

  // The kernel's symbols, with the module's moved by some bytes.
  ksym::KernelTimeline Kernel(uint64_t moved) const {
    std::string listing = "ffffffff81000000 T _stext\n";
    for (const Function& function : functions_) {
      char line[200];
      std::snprintf(line, sizeof(line), "%016llx t %s\t[fake_module]\n",
                    static_cast<unsigned long long>(function.start + moved),
                    function.name.c_str());
      listing += line;
    }
    InstallText("/kallsyms", listing);
    auto symbols = ksym::OpenKernelSymbols(Root() + "/kallsyms");
    EXPECT_TRUE(symbols);
    return ksym::KernelTimeline(std::move(*symbols));
  }

  // The places of all functions of that name, some bytes from their starts.
  std::vector<std::string> FramesAt(std::string_view name, uint64_t offset) {
    std::vector<std::string> texts;
    for (const Function& function : functions_) {
      if (function.name != name) continue;
      SetFrame(name, "[fake_module]", function.start + offset, offset);
      for (std::string& text : Found(Places(RunningRelease()), &*kernel_)) {
        texts.push_back(std::move(text));
      }
    }
    return texts;
  }
  std::vector<std::string> FramesAt(std::string_view name) {
    return FramesAt(name, 4);
  }

  // Where modules.dep says, which has another spelling of the name.
  void InstallModule() const {
    const std::string directory = "/lib/modules/" + RunningRelease() + "/";
    InstallText(directory + "modules.dep",
                "kernel/a/not-fake-module.ko.xz:\n"
                "kernel/a/fake-module.ko.xz: kernel/b/other.ko.xz\n");
    Install(kModule,
            "/usr/lib/debug" + directory + "kernel/a/fake-module.ko.debug");
  }

  static constexpr const char* kModule = KSYM_FAKE_MODULE;
  ksym::ByteSource source_ = ksym::ByteSource::OfMemory({});
  std::string build_id_;
  std::vector<Function> functions_;
  std::optional<ksym::KernelTimeline> kernel_;
};

TEST_F(ModuleLinesTest, InlinesAndLines) {
  InstallModule();
  EXPECT_THAT(FramesAt("module_work"),
              ElementsAre("module_inner fake_module.c:7",
                          "module_work fake_module.c:12"));
  EXPECT_THAT(FramesAt("module_begin"),
              ElementsAre("module_begin fake_module.c:16"));
  EXPECT_THAT(warnings_, IsEmpty());
}

// Two functions of one name are told by what is beside them.
TEST_F(ModuleLinesTest, FunctionsOfOneName) {
  InstallModule();
  EXPECT_THAT(FramesAt("twin"), ElementsAre("twin fake_module.c:21",
                                            "twin fake_module_twin.c:7"));
}

TEST_F(ModuleLinesTest, DirectoryOfBuildIds) {
  const std::string hex = ksym::ToHex(build_id_);
  Install(kModule, "/usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" +
                       hex.substr(2) + ".debug");
  EXPECT_THAT(FramesAt("module_begin"),
              ElementsAre("module_begin fake_module.c:16"));
}

// The kernel is not installed where its capture is read.
TEST_F(ModuleLinesTest, NoListOfModules) {
  Install(kModule, "/usr/lib/debug/lib/modules/" + RunningRelease() +
                       "/kernel/a/fake-module.ko");
  EXPECT_THAT(FramesAt("module_begin"),
              ElementsAre("module_begin fake_module.c:16"));
}

// The module that is loaded has another build-id, or says none.
TEST_F(ModuleLinesTest, AnotherBuild) {
  InstallModule();
  InstallNotes("/sys/module/fake_module/notes/.note.gnu.build-id",
               std::string(20, 'x'));
  EXPECT_THAT(FramesAt("module_begin"), ElementsAre("module_begin :0"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("[fake_module]")));
  std::filesystem::remove_all(Root() + "/sys");
  EXPECT_THAT(FramesAt("module_begin"), ElementsAre("module_begin :0"));
}

// It went, and came back elsewhere.
TEST_F(ModuleLinesTest, LoadedAgain) {
  InstallModule();
  kernel_ = Kernel(2);
  EXPECT_THAT(FramesAt("module_begin"), ElementsAre("module_begin :0"));
}

}  // namespace
}  // namespace profd
