// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/file_inputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "daemon/input/profile_input.h"
#include "daemon/naming/kernel_names.h"
#include "daemon/naming/resolve.h"
#include "daemon/oneshot/history_input.h"
#include "daemon/oneshot/messages.h"
#include "daemon/output/format.h"
#include "daemon/profile/parked.h"
#include "daemon/profile/profile_merge.h"
#include "daemon/raw/raw_file.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr size_t kMaxInputBytes = size_t{1} << 31;
constexpr size_t kMaxFilesOfDirectory = 10'000;

// A raw capture has no names yet.
Result<Profile> NameCapture(std::string bytes) {
  auto capture = ReadRawCapture(std::move(bytes));
  if (!capture) return Fail(std::move(capture.error()));
  const KernelNames kernel = KernelNames::OfCapture(*capture);
  ksym::SymbolizerOptions options;
  // Its processes are gone by now, or are another machine's.
  options.files = ksym::SymbolizerOptions::Files::kOfHost;
  options.vdso_image = capture->vdso_image;
  ksym::Symbolizer symbolizer(std::move(options));
  SymbolizerNames names(symbolizer);
  Resolver resolver({});
  UseKernelNames(kernel, resolver);
  ProfileBuilder builder;
  resolver.Add(capture->profile, names, builder);
  CaptureMetadata metadata = capture->profile.metadata;
  if (!kernel.warning().empty()) metadata.warnings.push_back(kernel.warning());
  Profile profile = std::move(builder).Finish(std::move(metadata));
  profile.thread_sums = std::move(capture->thread_sums);
  MarkParked(capture->thread_lives, profile);
  return profile;
}

Result<std::string> ReadInput(const std::string& path) {
  if (path == "-") return ksym::ReadAll(STDIN_FILENO, kMaxInputBytes);
  const auto file = ksym::OpenInput(path);
  if (!file) return Fail(file.error());
  auto bytes = ksym::ReadAll(file->get(), kMaxInputBytes);
  if (!bytes) return Fail(std::move(bytes.error()).WithContext(path));
  return bytes;
}

bool IsProfileName(const std::string& name) {
  if (name.ends_with(".raw")) return true;
  const FormatRow* format = FindFormatOfPath(name);
  return format != nullptr && format->is_readable;
}

Result<std::vector<std::string>> FilesOfDirectory(
    const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end;
       !error && at != end; at.increment(error)) {
    std::error_code of_file;
    if (!at->is_regular_file(of_file)) continue;
    if (!IsProfileName(at->path().filename().string())) continue;
    if (files.size() == kMaxFilesOfDirectory) {
      return Fail(ksym::ErrorCode::kLimit,
                  fmt::format("{}: there are more than {} profiles", directory,
                              kMaxFilesOfDirectory));
    }
    files.push_back(at->path().string());
  }
  if (error) return ksym::FailErrno(error.value(), directory);
  if (files.empty()) {
    return Fail(ksym::ErrorCode::kInvalid,
                fmt::format("{}: no profile is in it", directory));
  }
  // A directory has no order: the sum must not hang on how it is listed.
  std::ranges::sort(files);
  return files;
}

// Adds up profiles whose samples stand for the same.
class Sum {
 public:
  Status Add(const Profile& profile, const std::string& path) {
    const std::vector<SampleKind>& kinds = profile.metadata.kinds;
    if (first_.empty()) {
      first_ = path;
      kinds_ = kinds;
    } else if (kinds != kinds_) {
      return Fail(ksym::ErrorCode::kInvalid,
                  fmt::format("{} and {} were not sampled in the same way, so "
                              "they cannot be added up",
                              first_, path));
    }
    merger_.Add(profile);
    return {};
  }

  Profile Finish() && { return std::move(merger_).Finish(); }

 private:
  ProfileMerger merger_;
  std::string first_;
  std::vector<SampleKind> kinds_;
};

Status AddDirectory(const std::string& directory, Sum& sum) {
  const auto files = FilesOfDirectory(directory);
  if (!files) return Fail(files.error());
  bool has_any = false;
  for (const std::string& path : *files) {
    const auto profile = LoadProfile(path);
    if (!profile) {
      // One file that is damaged, or being written, must not hide all others.
      PrintMessage("warning: " + profile.error().message());
      continue;
    }
    if (auto added = sum.Add(*profile, path); !added) return added;
    has_any = true;
  }
  if (has_any) return {};
  return Fail(ksym::ErrorCode::kInvalid,
              fmt::format("{}: no profile in it can be read", directory));
}

// A history is one profile, though it is in a directory.
bool IsDirectory(const std::string& path) {
  std::error_code error;
  return path != "-" && fs::is_directory(path, error) &&
         !ParseHistoryInput(path);
}

Result<Profile> LoadNamed(const std::string& path, std::string bytes) {
  auto profile =
      IsRawCapture(bytes) ? NameCapture(std::move(bytes)) : ReadProfile(bytes);
  if (profile) return profile;
  return Fail(std::move(profile.error())
                  .WithContext(path == "-" ? "standard input" : path));
}

Result<Profile> LoadAnything(const std::string& path) {
  if (const auto input = ParseHistoryInput(path)) {
    auto profile = LoadHistoryInput(*input);
    if (profile) return profile;
    return Fail(std::move(profile.error()).WithContext(path));
  }
  auto bytes = ReadInput(path);
  if (!bytes) return Fail(bytes.error());
  return LoadNamed(path, std::move(*bytes));
}

}  // namespace

Result<Profile> LoadProfile(const std::string& path) {
  auto profile = LoadAnything(path);
  if (!profile) return profile;
  for (const std::string& warning : profile->metadata.warnings) {
    PrintMessage(fmt::format("warning: {}: {}", path, warning));
  }
  return profile;
}

Result<Profile> LoadProfiles(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && !IsDirectory(paths.front())) {
    return LoadProfile(paths.front());
  }
  Sum sum;
  for (const std::string& path : paths) {
    if (IsDirectory(path)) {
      if (auto added = AddDirectory(path, sum); !added)
        return Fail(added.error());
      continue;
    }
    const auto profile = LoadProfile(path);
    if (!profile) return Fail(profile.error());
    if (auto added = sum.Add(*profile, path); !added)
      return Fail(added.error());
  }
  return std::move(sum).Finish();
}

}  // namespace profd
