#include "daemon/profile/source_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/profile/kernel_debug.h"
#include "daemon/profile/line_builder.h"
#include "ksym/base/file.h"
#include "ksym/elf/code_ranges.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym/gsym_writer.h"
#include "ksym/gsym_cache.h"
#include "ksym/gsym_convert.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "ksym/kernel/kernel_timeline.h"
#include "ksym/process/process_image.h"

// Known to this program's symbol table.
extern "C" __attribute__((noinline)) int SourceLinesMarker(int value) {
  asm volatile("" : "+r"(value));
  return value + 1;
}

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Clock = std::chrono::steady_clock;

uint64_t MarkerAddress() {
  return reinterpret_cast<uint64_t>(&SourceLinesMarker);
}

// A profile with one sample in this program, and a cache of its own.
class SourceLinesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "source_lines_XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
    const ksym::ProcessId self = {.pid = static_cast<uint32_t>(::getpid())};
    auto mappings = ksym::ReadMaps(self.pid);
    ASSERT_TRUE(mappings);
    const ksym::UserSymbol symbol = symbolizer_.Resolve(
        {.id = self, .mappings = std::move(*mappings)}, {MarkerAddress()});
    if (symbol.build_id.empty()) GTEST_SKIP() << "linked without build-id";
    ASSERT_EQ(symbol.name, "SourceLinesMarker");
    build_id_ = symbol.build_id;
    ProfileBuilder builder;
    const Frame marker = {.name = builder.Intern(symbol.name),
                          .module = builder.Intern(symbol.module),
                          .build_id = builder.Intern(symbol.build_id),
                          .file_offset = symbol.file_offset.value};
    const Frame caller = {.name = builder.Intern("caller")};
    const std::vector<FrameId> stack = {builder.AddFrame(marker),
                                        builder.AddFrame(caller)};
    builder.AddSample({.user_state = StackState::kWhole,
                       .user = builder.AddStack(stack),
                       .count = 3});
    profile_ = std::move(builder).Finish({});
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // What a conversion of this program could have given.
  void FillCache(std::string_view uuid) {
    const auto program = symbolizer_.OpenAgain(build_id_);
    ASSERT_TRUE(program) << program.error().message();
    const auto elf = ksym::ElfImage::Parse(program->source);
    ASSERT_TRUE(elf);
    const auto start =
        ksym::ToElfAddress(elf->segments(), {profile_.frames[0].file_offset});
    ASSERT_TRUE(start);
    ksym::FunctionBatch batch;
    batch.files = {{}, {"/src", "a.cc"}, {"/src", "b.h"}};
    batch.lines = {{start->value, 2, 7}};
    batch.ranges = {{start->value, start->value + 4}};
    batch.inlines = {{"_Z5innerv", 1, 1, 30, 0, 1}};
    batch.functions = {{.name = "SourceLinesMarker",
                        .range = {start->value, start->value + 4},
                        .line_count = 1,
                        .inline_count = 1}};
    ksym::GsymWriter writer;
    writer.Add(batch);
    const auto bytes = std::move(writer).Finish(
        uuid.empty() ? elf->build_id().substr(0, 20) : uuid);
    ASSERT_TRUE(bytes);
    auto cache = ksym::GsymCache::Open(directory_, 1 << 20);
    ASSERT_TRUE(cache);
    ASSERT_TRUE(cache->Store(build_id_, *bytes));
  }

  LineFiles Files(Clock::duration wait = std::chrono::minutes(1)) const {
    return {symbolizer_,
            {.cache_directory = directory_, .deadline = Clock::now() + wait}};
  }

  // "name file:line", leaf first; inlined ones with "*".
  std::vector<std::string> Frames() const {
    std::vector<std::string> texts;
    for (const FrameId id : profile_.Stack(profile_.samples[0].user)) {
      const Frame& frame = profile_.frames[id];
      texts.push_back(std::string(profile_.String(frame.name)) +
                      (frame.inlined ? "* " : " ") +
                      std::string(profile_.String(frame.file)) + ":" +
                      std::to_string(frame.line));
    }
    return texts;
  }

  static constexpr auto kInlines = SourceLineOptions::Inlines::kShow;
  static constexpr auto kLines = SourceLineOptions::Lines::kShow;

  ksym::Symbolizer symbolizer_{{}};
  std::string directory_;
  std::string build_id_;
  Profile profile_;
};

TEST_F(SourceLinesTest, InlinesAndLines) {
  FillCache({});
  LineFiles files = Files();
  const auto counts =
      AddSourceLines(files, {.inlines = kInlines, .lines = kLines}, profile_);
  EXPECT_THAT(Frames(),
              ElementsAre("inner()* /src/b.h:7",
                          "SourceLinesMarker /src/a.cc:30", "caller :0"));
  EXPECT_EQ(counts.found, 1u);
  EXPECT_EQ(counts.inlined, 1u);
  EXPECT_EQ(files.counts().from_cache, 1u);
  EXPECT_THAT(files.Warnings(), IsEmpty());
  EXPECT_EQ(profile_.samples[0].count, 3u);
}

// Without inlined frames a function has the line where its code is from.
TEST_F(SourceLinesTest, LinesAlone) {
  FillCache({});
  LineFiles files = Files();
  AddSourceLines(files, {.lines = kLines}, profile_);
  EXPECT_THAT(Frames(),
              ElementsAre("SourceLinesMarker /src/b.h:7", "caller :0"));
}

TEST_F(SourceLinesTest, InlinesAlone) {
  FillCache({});
  LineFiles files = Files();
  AddSourceLines(files,
                 {.inlines = kInlines,
                  .demangle = ksym::SymbolizerOptions::Demangle::kOff},
                 profile_);
  EXPECT_THAT(Frames(), ElementsAre("_Z5innerv* :0", "SourceLinesMarker :0",
                                    "caller :0"));
}

// When the time is up nothing is read; names are as they were.
TEST_F(SourceLinesTest, Deadline) {
  LineFiles files = Files(-std::chrono::seconds(1));
  AddSourceLines(files, {.inlines = kInlines, .lines = kLines}, profile_);
  EXPECT_THAT(Frames(), ElementsAre("SourceLinesMarker :0", "caller :0"));
  EXPECT_EQ(files.counts().late, 1u);
  EXPECT_THAT(files.Warnings(),
              ElementsAre(HasSubstr("--symbol-timeout was over")));
}

// With a builder nothing is waited for: there are no lines at first, and when
// its thread has made them they come from the cache.
TEST_F(SourceLinesTest, Builder) {
  LineBuilder builder({.cache_directory = directory_});
  LineFiles files(symbolizer_, {.cache_directory = directory_,
                                .deadline = Clock::time_point::max(),
                                .builder = &builder});
  AddSourceLines(files, {.lines = kLines}, profile_);
  EXPECT_THAT(Frames(), ElementsAre("SourceLinesMarker :0", "caller :0"));
  const auto deadline = Clock::now() + std::chrono::minutes(2);
  while (files.Find(build_id_, "this") == nullptr) {
    if (files.counts().without_debug_data > 0) {
      GTEST_SKIP() << "this program has no debug data";
    }
    ASSERT_EQ(files.counts().failed, 0u) << files.Warnings().front();
    ASSERT_LT(Clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(files.counts().converted, 1u);
  EXPECT_EQ(files.counts().from_cache, 1u);
  AddSourceLines(files, {.lines = kLines}, profile_);
  EXPECT_THAT(Frames(),
              ElementsAre(HasSubstr("source_lines_test.cc:"), "caller :0"));
}

// It gives up what it has begun, and says what it cannot make.
TEST_F(SourceLinesTest, BuilderGivesUp) {
  LineBuilder builder({.cache_directory = directory_, .max_file_bytes = 1000});
  for (int i = 0; i < 3; ++i) {
    auto program = symbolizer_.OpenAgain(build_id_);
    ASSERT_TRUE(program);
    EXPECT_TRUE(builder.Add(build_id_, "this", std::move(*program)));
  }
  std::vector<LineBuilder::Done> done;
  while (done.empty()) done = builder.TakeDone();
  EXPECT_EQ(done.front().outcome, LineBuilder::Outcome::kFailed);
  EXPECT_EQ(done.front().error, "too large");
  EXPECT_EQ(done.front().build_id, build_id_);
}

// Another program's file, one that is damaged, and one that others may write
// to are not used.
TEST_F(SourceLinesTest, DistrustsTheCache) {
  const std::string path = directory_ + "/" + build_id_ + ".1.gsym";
  const auto is_used = [&] {
    LineFiles files = Files(-std::chrono::seconds(1));
    files.Find(build_id_, "this");
    return files.counts().from_cache == 1;
  };
  FillCache("another");
  EXPECT_FALSE(is_used());
  FillCache({});
  EXPECT_TRUE(is_used());
  ASSERT_EQ(::chmod(path.c_str(), 0622), 0);
  EXPECT_FALSE(is_used());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const auto size = std::filesystem::file_size(path);
  for (const auto kept : {size - 1, size / 2, decltype(size){0}}) {
    std::filesystem::resize_file(path, kept);
    EXPECT_FALSE(is_used()) << kept;
  }
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/proc/self/exe", path);
  EXPECT_FALSE(is_used());
}

// The release of a kernel that nobody runs.
constexpr const char* kNoRelease = "of-no-machine";

// The folders of a machine, and frames of its kernel.
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
                          .module = builder.Intern(module),
                          .kind = FrameKind::kKernel,
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
      ElementsAre("inner fake_kernel.c:12", "do_something fake_kernel.c:16"));
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
    const std::string folder = "/lib/modules/" + RunningRelease() + "/";
    InstallText(folder + "modules.dep",
                "kernel/a/not-fake-module.ko.xz:\n"
                "kernel/a/fake-module.ko.xz: kernel/b/other.ko.xz\n");
    Install(kModule,
            "/usr/lib/debug" + folder + "kernel/a/fake-module.ko.debug");
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
              ElementsAre("module_inner fake_module.c:6",
                          "module_work fake_module.c:11"));
  EXPECT_THAT(FramesAt("module_begin"),
              ElementsAre("module_begin fake_module.c:15"));
  EXPECT_THAT(warnings_, IsEmpty());
}

// Two functions of one name are told by what is beside them.
TEST_F(ModuleLinesTest, FunctionsOfOneName) {
  InstallModule();
  EXPECT_THAT(FramesAt("twin"), ElementsAre("twin fake_module.c:20",
                                            "twin fake_module_twin.c:6"));
}

TEST_F(ModuleLinesTest, FolderOfBuildIds) {
  const std::string hex = ksym::ToHex(build_id_);
  Install(kModule, "/usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" +
                       hex.substr(2) + ".debug");
  EXPECT_THAT(FramesAt("module_begin"),
              ElementsAre("module_begin fake_module.c:15"));
}

// The kernel is not installed where its capture is read.
TEST_F(ModuleLinesTest, NoListOfModules) {
  Install(kModule, "/usr/lib/debug/lib/modules/" + RunningRelease() +
                       "/kernel/a/fake-module.ko");
  EXPECT_THAT(FramesAt("module_begin"),
              ElementsAre("module_begin fake_module.c:15"));
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
