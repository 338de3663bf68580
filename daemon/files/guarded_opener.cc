// SPDX-License-Identifier: Apache-2.0
#include "daemon/files/guarded_opener.h"

#include <cerrno>
#include <utility>

namespace profd {
namespace {

using ksym::IsRemote;
using ksym::Mapping;
using ksym::OpenedFile;
using ksym::Result;

using Kind = FileRequest::Kind;

FileRequest HoldRequest(uint32_t pid, const Mapping& mapping) {
  FileRequest request;
  request.kind = Kind::kHold;
  request.pid = pid;
  request.mapping = mapping;
  return request;
}

}  // namespace

Result<OpenedFile> GuardedOpener::HoldLocal(uint32_t pid,
                                            const Mapping& mapping) {
  return ksym::HoldMappedOrHostFile(pid, mapping, &file_systems_);
}

Result<OpenedFile> GuardedOpener::Hold(uint32_t pid, const Mapping& mapping) {
  auto held = HoldLocal(pid, mapping);
  if (held || !IsRemote(held.error()) || !child_) return held;
  return child_->Wait(child_->Ask(HoldRequest(pid, mapping), kHoldPatience));
}

Result<OpenedFile> GuardedOpener::HoldOfHost(const Mapping& mapping) {
  return ksym::HoldHostFile(mapping, &file_systems_);
}

// Takes the descriptor.
uint64_t GuardedOpener::AskToRead(OpenedFile& held,
                                  std::chrono::milliseconds patience) {
  FileRequest request;
  request.kind = Kind::kRead;
  request.pid = held.remote->pid;
  request.mapping = held.remote->mapping;
  request.held.fd = std::move(held.fd);
  request.held.size = held.size;
  request.held.mtime_ns = held.mtime_ns;
  return child_->Ask(std::move(request), patience);
}

ksym::Status GuardedOpener::Open(OpenedFile& file) {
  if (!file.remote || !file.is_held) return ksym::OpenHeld(file);
  auto copy = child_->Wait(AskToRead(file, kReadPatience));
  if (!copy) return ksym::Fail(std::move(copy.error()));
  // What was mapped was learned when it was held; the copy does not tell.
  std::string build_id = std::move(file.mapped_build_id);
  file = std::move(*copy);
  file.mapped_build_id = std::move(build_id);
  return {};
}

Result<OpenedFile> GuardedOpener::OpenPath(uint32_t pid,
                                           const std::string& path,
                                           ksym::Links links) {
  auto opened = pid == 0
                    ? ksym::OpenFileOfHost(path, links, &file_systems_)
                    : ksym::OpenFileOfProcess(pid, path, links, &file_systems_);
  if (opened || !IsRemote(opened.error()) || !child_) return opened;
  const Path key(pid, path);
  if (auto error = FindMissing(key)) return ksym::Fail(std::move(*error));
  FileRequest request;
  request.kind = Kind::kOpenPath;
  request.pid = pid;
  request.mapping.path = path;
  request.links = links;
  opened = child_->Wait(child_->Ask(std::move(request), kReadPatience));
  if (!opened) Remember(key, opened.error());
  return opened;
}

// Debug files and perf maps are looked for again and again, most of them in
// vain.
std::optional<ksym::Error> GuardedOpener::FindMissing(const Path& path) {
  const std::scoped_lock lock(mutex_);
  const auto found = missing_.find(path);
  if (found == missing_.end() ||
      found->second.until < std::chrono::steady_clock::now()) {
    return std::nullopt;
  }
  return found->second.error;
}

void GuardedOpener::Remember(const Path& path, const ksym::Error& error) {
  const auto now = std::chrono::steady_clock::now();
  const std::scoped_lock lock(mutex_);
  std::erase_if(missing_,
                [now](const auto& entry) { return entry.second.until < now; });
  if (missing_.size() >= kMaxMissing) return;
  missing_.insert_or_assign(path, Missing(error, now + kMissingFor));
}

uint64_t GuardedOpener::given_up() const {
  return child_ ? child_->given_up() : 0;
}

std::vector<std::string> GuardedOpener::TakeWarnings() {
  return child_ ? child_->TakeWarnings() : std::vector<std::string>();
}

uint64_t GuardedOpener::BeginOpening(uint32_t pid, const Mapping& mapping) {
  Opening opening;
  if (child_) {
    opening.request = child_->Ask(HoldRequest(pid, mapping), kOpeningPatience);
  }
  openings_[++last_opening_] = std::move(opening);
  return last_opening_;
}

std::optional<Result<OpenedFile>> GuardedOpener::TakeOpened(uint64_t id) {
  const auto found = openings_.find(id);
  if (found == openings_.end() || !child_) {
    openings_.erase(id);
    return ksym::FailErrno(EREMOTE, "files on other machines");
  }
  Opening& opening = found->second;
  auto file = child_->Take(opening.request);
  if (!file) return std::nullopt;
  // Two requests, one to hold it and one to read it, so that each step has its
  // own patience.
  if (*file && !opening.is_held) {
    opening.is_held = true;
    opening.mapped_build_id = std::move((*file)->mapped_build_id);
    opening.request = AskToRead(**file, kOpeningPatience);
    return std::nullopt;
  }
  if (*file) (*file)->mapped_build_id = std::move(opening.mapped_build_id);
  openings_.erase(found);
  return file;
}

void GuardedOpener::WaitForOpened(std::chrono::milliseconds time) const {
  if (child_) child_->WaitForNews(time);
}

std::shared_ptr<GuardedOpener> StartGuardedOpener(std::string& warning) {
  auto child = FileChild::Start();
  if (!child) {
    warning = "files on FUSE and network file systems are not read: " +
              child.error().message();
  }
  return std::make_shared<GuardedOpener>(child ? std::move(*child)
                                               : std::unique_ptr<FileChild>());
}

}  // namespace profd
