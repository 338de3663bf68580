// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/debian_package.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace profd {
namespace {

constexpr size_t kMaxListBytes = size_t{64} << 20;
constexpr std::string_view kList = ".list";

// Packages whose symbols are in one that is not called NAME-dbgsym.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5>
    kOtherNames = {{{"libc6", "libc6-dbg"},
                    {"libc-bin", "libc6-dbg"},
                    {"python3.11-minimal", "python3.11-dbg"},
                    {"libpython3.11", "python3.11-dbg"},
                    {"libpython3.11-minimal", "python3.11-dbg"}}};

std::string BuildIdOf(const std::string& path) {
  auto file = ksym::OpenForRead(path);
  struct stat status = {};
  if (!file || ::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {};
  }
  const auto source = ksym::ByteSource::OfFile(
      std::move(*file), static_cast<uint64_t>(status.st_size));
  const auto image = ksym::ElfImage::Parse(source);
  return image ? ksym::ToHex(image->build_id()) : std::string();
}

// A path as dpkg may have it: /usr/lib/x as /lib/x, the path that was packed,
// from before /lib became /usr/lib.
class PackedPath {
 public:
  explicit PackedPath(std::string_view path) {
    constexpr std::string_view kUsr = "/usr";
    if (path.starts_with("/usr/lib") || path.starts_with("/usr/bin") ||
        path.starts_with("/usr/sbin")) {
      before_ = kUsr;
      path.remove_prefix(kUsr.size());
    }
    line_ = std::string(path) + '\n';
  }

  // Whether the lines of `text`, each with its end, have it.
  // std::string_view::find would stop at each slash.
  bool IsIn(std::string_view text) const {
    const char* end = text.data() + text.size();
    for (const char* at = text.data(); at < end; ++at) {
      at = static_cast<const char*>(::memmem(at, static_cast<size_t>(end - at),
                                             line_.data(), line_.size()));
      if (at == nullptr) return false;
      std::string_view line =
          text.substr(0, static_cast<size_t>(at - text.data()));
      if (line.ends_with(before_)) line.remove_suffix(before_.size());
      const bool is_as_it_is = at == text.data() || at[-1] == '\n';
      if (is_as_it_is || line.empty() || line.back() == '\n') return true;
    }
    return false;
  }

 private:
  std::string_view before_;
  std::string line_;
};

// Looks through lists, kMaxListBytes of them at the most.
class ListSearch {
 public:
  explicit ListSearch(const std::string& path) : path_(path) {}

  // False for a list that cannot be read, or once the bound was met.
  bool IsIn(int directory, const char* name) {
    const ksym::UniqueFd file(
        ::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return false;
    bool is_found = false;
    const auto read =
        ksym::ForEachBlockOfLines(file.get(), [&](std::string_view lines) {
          if (lines.size() > left_) return false;
          left_ -= lines.size();
          is_found = path_.IsIn(lines);
          return !is_found;
        });
    return read && is_found;
  }

 private:
  PackedPath path_;
  size_t left_ = kMaxListBytes;
};

// "libc6:amd64.list": "libc6-dbg".
std::string SymbolsOf(std::string_view list) {
  list.remove_suffix(kList.size());
  const std::string_view package = list.substr(0, list.find(':'));
  for (const auto& [name, symbols] : kOtherNames) {
    if (name == package) return std::string(symbols);
  }
  return std::string(package) + "-dbgsym";
}

}  // namespace

std::string DebugPackageOf(const std::string& path, std::string_view build_id,
                           const std::string& lists) {
  if (build_id.empty()) return {};
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(lists.c_str()),
                                                      ::closedir);
  if (directory == nullptr) return {};
  ListSearch search(path);
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(kList)) continue;
    if (!search.IsIn(::dirfd(directory.get()), entry->d_name)) continue;
    // Nothing else than a file of a package is opened.
    return BuildIdOf(path) == build_id ? SymbolsOf(name) : std::string();
  }
  return {};
}

}  // namespace profd
