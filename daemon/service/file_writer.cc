// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/file_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "daemon/output/format.h"
#include "daemon/service/log.h"

namespace profd {
namespace {

// Profiles that wait for a slow disk; each may hold some megabytes. Where the
// kernel is slow to write its table, those of some seconds come at once.
constexpr size_t kMaxFilesWaiting = 16;

// Without its dot.
std::string_view ExtensionOf(OutputFormat format) {
  return RowOf(format).extensions[0].substr(1);
}

}  // namespace

FileWriter::FileWriter(Settings settings, ServiceCounters& counters)
    : counters_(counters),
      tasks_(kMaxFilesWaiting),
      settings_(std::move(settings)),
      thread_([this] { Run(); }) {}

FileWriter::~FileWriter() {
  tasks_.Close();
  thread_.join();
}

void FileWriter::Write(std::shared_ptr<const Profile> profile) {
  const uint64_t samples = profile->accounting.emitted;
  Task task = std::move(profile);
  if (tasks_.Push(task)) return;
  ++counters_.profiles_dropped_unwritten;
  LogSome(LogLevel::kError, "disk-behind",
          fmt::format("a profile of {} samples was not written: the disk is "
                      "too slow",
                      samples));
}

void FileWriter::Configure(Settings settings) {
  Task task = std::move(settings);
  if (tasks_.Push(task)) return;
  Log(LogLevel::kError,
      "the disk is too slow: \"files\" stays as it was; reload again");
}

bool FileWriter::Finish(std::chrono::steady_clock::time_point deadline) {
  tasks_.Close();
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return done_; });
}

void FileWriter::Run() {
  while (auto task = tasks_.Pop()) {
    if (auto* settings = std::get_if<Settings>(&*task)) {
      settings_ = std::move(*settings);
      // The sums are of the old directory and limits.
      files_.reset();
      continue;
    }
    WriteOne(*std::get<std::shared_ptr<const Profile>>(*task));
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void FileWriter::WriteOne(const Profile& profile) {
  if (settings_.directory.empty()) return;
  const auto written = TryWrite(profile);
  if (!written) {
    ++counters_.files_failed;
    LogSome(LogLevel::kError, "file",
            fmt::format("a profile of {} samples was not written: {}",
                        profile.accounting.emitted, written.error().message()));
  } else if (failing_) {
    Log(LogLevel::kInfo, "profiles are written again");
  }
  failing_ = !written;
}

ksym::Status FileWriter::TryWrite(const Profile& profile) {
  if (!files_) {
    auto files = ProfileFiles::Open(settings_.directory, settings_.limits);
    if (!files) return ksym::Fail(std::move(files.error()));
    files_ = std::move(*files);
  }
  const auto format =
      ParseOutputFormat(settings_.format).value_or(OutputFormat::kPprof);
  const auto bytes = RenderWithin(kMaxRenderedBytes, profile, format,
                                  OptionsFor(format, settings_.labels));
  if (!bytes) return ksym::Fail(bytes.error());
  auto path = files_->Write(profile.metadata.start_unix_ns, ExtensionOf(format),
                            *bytes);
  if (!path) {
    // A file system that was full is looked at anew.
    files_.reset();
    return ksym::Fail(std::move(path.error()));
  }
  ++counters_.files_written;
  counters_.file_bytes_written += bytes->size();
  Log(LogLevel::kDebug, fmt::format("{}: {} samples, {} bytes", *path,
                                    profile.accounting.emitted, bytes->size()));
  return {};
}

ksym::Status PrepareDirectory(const std::string& directory) {
  if (directory.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return ksym::FailErrno(error.value(), directory);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    return ksym::FailErrno(errno, directory);
  }
  return {};
}

}  // namespace profd
