// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/input/gunzip.h"
#include "daemon/naming/kernel_names.h"
#include "daemon/naming/resolve.h"
#include "daemon/output/format.h"
#include "daemon/output/markup.h"
#include "daemon/profile/parked.h"
#include "daemon/raw/raw_file.h"

namespace profd {
namespace {

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Names user code by its place in its file, so that no file of this machine is
// read. Anonymous memory is code that a perf map would name.
class PlaceNames : public UserNames {
 public:
  ksym::UserSymbol Find(const ksym::ProcessImage& image,
                        ksym::Address address) override {
    ksym::UserSymbol symbol;
    const ksym::Mapping* mapping = image.Find(address);
    if (mapping == nullptr) {
      symbol.reason = ksym::Unresolved::kUnmapped;
      return symbol;
    }
    symbol.module = mapping->path.str();
    symbol.file_offset = mapping->file_offset + (address - mapping->start);
    symbol.symbol_offset = symbol.file_offset.value % 16;
    if (symbol.module == "[vdso]") {
      symbol.reason = ksym::Unresolved::kNoSymbols;
      return symbol;
    }
    symbol.name = names_.emplace_back(
        fmt::format("f_{:x}", symbol.file_offset.value / 16));
    if (symbol.module.empty()) {
      symbol.file_offset = {};
    } else {
      symbol.build_id = "0123456789abcdef";
    }
    return symbol;
  }

 private:
  std::deque<std::string> names_;  // elements never move
};

// Each frame of another kind is a function and a call that is inlined there.
class InlinedNamer : public FrameNamer {
 public:
  void Name(const RawFrame& frame, const ksym::ProcessImage* /*image*/,
            ProfileBuilder& builder,
            std::vector<FrameId>& leaf_first) override {
    Frame named = {.name = builder.Intern(fmt::format("in_{:x}", frame.value)),
                   .object = builder.Intern("/usr/bin/app"),
                   .kind = &kInlinedFrame,
                   .file_offset = frame.value,
                   .file = builder.Intern("/src/app.cc"),
                   .line = frame.kind};
    leaf_first.push_back(builder.AddFrame(named));
    named.name = builder.Intern(fmt::format("of_{:x}", frame.value));
    named.kind = &kUserFrame;
    leaf_first.push_back(builder.AddFrame(named));
  }
};

Profile Named(const RawCapture& capture) {
  const KernelNames kernel = KernelNames::OfCapture(capture);
  PlaceNames names;
  InlinedNamer namer;
  Resolver resolver({});
  UseKernelNames(kernel, resolver);
  resolver.SetNamer(1, namer);
  resolver.SetNamer(2, namer);
  ProfileBuilder builder;
  resolver.Add(capture.profile, names, builder);
  Profile profile = std::move(builder).Finish(capture.profile.metadata);
  MarkParked(capture.thread_lives, profile);
  return profile;
}

void Replace(std::string_view from, std::string_view to, std::string& text) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// What the profile makes of an output: neither what zlib does to it, nor the
// page's own program, nor which version wrote it. Of a long text the beginning.
std::string Reviewed(std::string text) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  constexpr size_t kMaxReviewed = 8192;
  constexpr std::string_view kData =
      "<script type=\"application/json\" id=\"data\">";
  if (text.starts_with("\x1f\x8b")) return *Gunzip(text, kMaxBytes);
  if (const size_t at = text.find(kData); at != std::string::npos) {
    text = text.substr(at + kData.size());
    text.resize(text.find("</script>"));
  }
  Replace("ksym-profile@" KSYM_VERSION, "ksym-profile@VERSION", text);
  if (text.size() > kMaxReviewed) {
    const auto* bytes = reinterpret_cast<const Bytef*>(text.data());
    const std::string end =
        fmt::format("\n... {} bytes, CRC-32 {:08x}\n", text.size(),
                    ::crc32(0, bytes, static_cast<uInt>(text.size())));
    text.resize(kMaxReviewed);
    text += end;
  }
  return text;
}

using Outputs = std::vector<std::pair<std::string, std::string>>;

// With the kind of that name chosen; empty: with what is there.
void AddFormats(const std::string& name, const Profile& profile,
                std::string_view kind, Outputs& outputs) {
  const OutputOptions options = {.annotations = true, .delimiter = true};
  for (const FormatRow& row : FormatRows()) {
    Profile chosen = profile;
    if (!kind.empty()) {
      EXPECT_TRUE(ChooseKind(kind, row, chosen));
    }
    ArrangeParked(ParkedStacks::kFolded, row, chosen);
    outputs.emplace_back(fmt::format("{}.{}", name, row.name),
                         Reviewed(Render(chosen, row.format, options)));
  }
}

std::string Markup(const RawCapture& capture, SampleKindId kind) {
  std::string markup;
  OutputBuffer out([&](std::string_view piece) {
    markup += piece;
    return ksym::Status();
  });
  WriteMarkup(capture, kind, OutputOptions::By::kTid, out);
  EXPECT_TRUE(out.Finish());
  return markup;
}

// The names of the files and what is to be in them.
Outputs OutputsOf(const std::string& version, const RawCapture& capture) {
  Outputs outputs;
  const Profile profile = Named(capture);
  AddFormats(version, profile, "", outputs);
  if (FindKind(profile.metadata.kinds, "blocked") != nullptr) {
    AddFormats(version + "_blocked", profile, "blocked", outputs);
  }
  const auto& kinds = capture.profile.metadata.kinds;
  for (SampleKindId kind = 0; kind < kinds.size(); ++kind) {
    const std::string name = kind == 0 ? "" : "_" + kinds[kind].name;
    outputs.emplace_back(version + name + ".markup", Markup(capture, kind));
  }
  return outputs;
}

class ReplayedGoldenTest : public testing::TestWithParam<const char*> {};

// A capture that was recorded once has the same bytes in each format for ever.
TEST_P(ReplayedGoldenTest, EachFormatIsAsReviewed) {
  const std::string directory(KSYM_TEST_DATA_DIR);
  const auto capture =
      ReadRawCapture(ReadWhole(directory + "/raw/" + GetParam() + ".raw"));
  ASSERT_TRUE(capture) << capture.error().message();
  for (const auto& [name, actual] : OutputsOf(GetParam(), *capture)) {
    const std::string path = directory + "/replayed/" + name;
    if (std::getenv("KSYM_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path, std::ios::binary) << actual;
    }
    EXPECT_EQ(actual, ReadWhole(path))
        << path << " (to accept: KSYM_UPDATE_GOLDEN=1)";
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, ReplayedGoldenTest,
                         testing::Values("version_1", "version_2", "version_3",
                                         "version_4", "version_5"));

}  // namespace
}  // namespace profd
