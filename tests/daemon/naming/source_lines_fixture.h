// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "daemon/naming/source_lines.h"
#include "ksym/gsym/gsym_writer.h"
#include "ksym/gsym_cache.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"

// In the test program, so that its symbol table knows it.
extern "C" int SourceLinesMarker(int value);

namespace profd {

inline uint64_t MarkerAddress() {
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
                          .object = builder.Intern(symbol.module),
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

  LineFiles Files(std::chrono::steady_clock::duration wait =
                      std::chrono::minutes(1)) const {
    return {symbolizer_,
            {.cache_directory = directory_,
             .deadline = std::chrono::steady_clock::now() + wait}};
  }

  // "name file:line", leaf first; inlined ones with "*".
  std::vector<std::string> Frames() const {
    std::vector<std::string> texts;
    for (const FrameId id : profile_.Stack(profile_.samples[0].user)) {
      const Frame& frame = profile_.frames[id];
      texts.push_back(std::string(profile_.String(frame.name)) +
                      (frame.kind->is_inlined ? "* " : " ") +
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

}  // namespace profd
