// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/debian_package.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace profd {
namespace {

namespace fs = std::filesystem;

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

// Whether the text has `path` as a line of its own.
bool HasLine(std::string_view text, std::string_view path) {
  for (size_t at = text.find(path); at != std::string_view::npos;
       at = text.find(path, at + 1)) {
    const size_t end = at + path.size();
    const bool begins = at == 0 || text[at - 1] == '\n';
    if (begins && (end == text.size() || text[end] == '\n')) return true;
  }
  return false;
}

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
  // dpkg has the path that was packed, from before /lib became /usr/lib.
  constexpr std::string_view kUsr = "/usr";
  const std::string_view packed = path;
  const std::string_view older = packed.starts_with("/usr/lib") ||
                                         packed.starts_with("/usr/bin") ||
                                         packed.starts_with("/usr/sbin")
                                     ? packed.substr(kUsr.size())
                                     : packed;
  size_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(lists, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.ends_with(kList)) continue;
    const auto text = ksym::ReadFile(at->path().string(), kMaxListBytes);
    if (!text) continue;
    bytes += text->size();
    if (bytes > kMaxListBytes) continue;
    if (!HasLine(*text, path) && !HasLine(*text, older)) continue;
    // Nothing else than a file of a package is opened.
    return BuildIdOf(path) == build_id ? SymbolsOf(name) : std::string();
  }
  return {};
}

}  // namespace profd
