// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/cgroup_names.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "daemon/base/process_start.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// The inode of the root in kernfs, which is the cgroup's id.
constexpr uint64_t kRootCgroup = 1;
// Drains after which a process that was not sampled is forgotten: a minute.
constexpr uint64_t kForgetAfter = 60;
constexpr size_t kMaxText = size_t{64} << 10;

// "36 31 0:41 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"
std::string FindMount() {
  const auto text = ksym::ReadFile("/proc/self/mountinfo", size_t{4} << 20);
  if (!text) return {};
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view line = ksym::TakeField(rest, '\n');
    if (!line.contains(" - cgroup2 ")) continue;
    // The fifth field is where it is mounted (proc(5)).
    for (int field = 0; field < 4; ++field) ksym::TakeField(line, ' ');
    return std::string(ksym::TakeField(line, ' '));
  }
  return {};
}

// Nothing if the pid is another process's by now.
std::string ReadProcCgroup(const ksym::ProcessId& process) {
  const auto text =
      ksym::ReadFile(fmt::format("/proc/{}/cgroup", process.pid), kMaxText);
  if (!text) return {};
  // After the reading: the pid was this process's until then.
  if (!IsSameProcess(process.pid, process.start_ns)) return {};
  return ChooseCgroup(*text);
}

}  // namespace

std::string ChooseCgroup(std::string_view text) {
  std::string_view unified;
  std::string_view systemd;
  std::string_view other;
  // "HIERARCHY:CONTROLLERS:PATH"; a path may have colons and no newlines.
  while (!text.empty()) {
    std::string_view path = ksym::TakeField(text, '\n');
    const std::string_view hierarchy = ksym::TakeField(path, ':');
    const std::string_view controllers = ksym::TakeField(path, ':');
    if (!path.starts_with('/')) continue;
    if (hierarchy == "0" && controllers.empty()) {
      unified = path;
    } else if (controllers == "name=systemd") {
      systemd = path;
    } else if (path.size() > other.size()) {
      other = path;
    }
  }
  for (const std::string_view path : {unified, systemd, other}) {
    if (path.size() > 1) return std::string(path);
  }
  return std::string(unified.empty() ? systemd : unified);
}

CgroupNames::CgroupNames(ServiceCounters& counters)
    : counters_(counters), mount_path_(FindMount()) {
  if (mount_path_.empty()) return;
  mount_ = ksym::UniqueFd(
      ::open(mount_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void CgroupNames::NoteSample(const ksym::ProcessId& process, uint64_t cgroup) {
  if (process.pid == 0) return;  // idle
  const auto [at, is_new] = processes_.try_emplace(
      Key{.pid = process.pid, .start_ns = process.start_ns});
  Entry& entry = at->second;
  entry.last_seen = drains_;
  // It was moved; or it is asked for again, as it may just have been made.
  if (!is_new && entry.path && (cgroup == 0 || cgroup == entry.cgroup)) return;
  entry.cgroup = cgroup;
  entry.path = PathOf(process, cgroup);
}

const CgroupNames::Path& CgroupNames::Find(const ksym::ProcessId& process) {
  const Key key = {.pid = process.pid, .start_ns = process.start_ns};
  const auto known = processes_.find(key);
  if (known != processes_.end()) return known->second.path;
  NoteSample(process, 0);
  return processes_[key].path;
}

std::string_view CgroupNames::PathOfProcess(const ksym::ProcessId& process) {
  if (process.pid == 0) return {};  // idle
  const Path& path = Find(process);
  return path ? std::string_view(*path) : std::string_view();
}

void CgroupNames::Label(RawProfile& profile) {
  for (const RawSample& sample : profile.samples) {
    if (sample.process.pid == 0 || profile.cgroups.contains(sample.process)) {
      continue;
    }
    const Path& path = Find(sample.process);
    if (path) {
      profile.cgroups.emplace(sample.process, *path);
    } else {
      counters_.samples_without_cgroup += sample.count;
    }
  }
  if (++drains_ % kForgetAfter == 0) Forget();
}

void CgroupNames::Forget() {
  // Before the paths, as each process holds its own.
  std::erase_if(processes_, [&](const auto& entry) {
    return entry.second.last_seen + kForgetAfter < drains_;
  });
  std::erase_if(paths_,
                [](const auto& path) { return path.second.use_count() == 1; });
}

CgroupNames::Path CgroupNames::PathOf(const ksym::ProcessId& process,
                                      uint64_t cgroup) {
  if (cgroup > kRootCgroup) {
    const auto known = paths_.find(cgroup);
    if (known != paths_.end()) return known->second;
    // Handles cannot be opened without CAP_DAC_READ_SEARCH, nor that of a
    // cgroup that is gone: then the process says it, if it lives.
    if (Path path = PathOfId(cgroup)) {
      paths_.emplace(cgroup, path);
      return path;
    }
  }
  std::string path = ReadProcCgroup(process);
  // The kernel's own threads, perhaps already gone, are in the root.
  if (path.empty() && cgroup == kRootCgroup) path += '/';
  if (path.empty()) return nullptr;
  return std::make_shared<const std::string>(std::move(path));
}

CgroupNames::Path CgroupNames::PathOfId(uint64_t cgroup) {
  if (!mount_.valid()) return nullptr;
  // The kernel's handle of a cgroup's directory is its id (5.5).
  constexpr int kKernfsHandle = 0xfe;
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + 8> bytes;
  auto* const handle = reinterpret_cast<file_handle*>(bytes.data());
  handle->handle_bytes = sizeof(cgroup);
  handle->handle_type = kKernfsHandle;
  std::memcpy(handle->f_handle, &cgroup, sizeof(cgroup));
  const ksym::UniqueFd directory(
      ::open_by_handle_at(mount_.get(), handle, O_PATH | O_CLOEXEC));
  if (!directory.valid()) return nullptr;
  std::error_code error;
  const std::string path =
      std::filesystem::read_symlink(
          fmt::format("/proc/self/fd/{}", directory.get()), error)
          .string();
  if (error || !path.starts_with(mount_path_)) return nullptr;
  return std::make_shared<const std::string>(path.substr(mount_path_.size()));
}

}  // namespace profd
