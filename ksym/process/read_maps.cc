// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/base/unique_fd.h"
#include "ksym/process/process_image.h"

namespace ksym {
namespace {

// struct procmap_query of linux/fs.h, which Debian 12's headers do not have.
struct ProcmapQuery {
  uint64_t size = sizeof(ProcmapQuery);
  uint64_t query_flags = 0;
  uint64_t query_addr = 0;
  uint64_t vma_start = 0;
  uint64_t vma_end = 0;
  uint64_t vma_flags = 0;
  uint64_t vma_page_size = 0;
  uint64_t vma_offset = 0;
  uint64_t inode = 0;
  uint32_t dev_major = 0;
  uint32_t dev_minor = 0;
  uint32_t vma_name_size = 0;  // with the NUL; 0: no name
  uint32_t build_id_size = 0;
  uint64_t vma_name_addr = 0;
  uint64_t build_id_addr = 0;
};
static_assert(sizeof(ProcmapQuery) == 104);

constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr uint64_t kExecutable = 0x04;
constexpr uint64_t kCoveringOrNext = 0x10;

// Each thread has two mappings, which are not executable. The kernel passes
// over these within one call, in which nothing else gets the CPU where it is
// not preemptible: 3 ms for 10,000 threads. From so many threads on each
// mapping is asked for with a call of its own, 0.3 us.
constexpr nlink_t kManyThreads = 500;

uint64_t PointerValue(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// How the kernel is asked for executable mappings.
enum class Query { kNextExecutable, kEachMapping };

// The kernel adds the number of threads to the links of this directory.
Query QueryFor(const std::string& process) {
  struct stat task = {};
  const bool has_many = ::stat((process + "/task").c_str(), &task) == 0 &&
                        task.st_nlink > kManyThreads;
  return has_many ? Query::kEachMapping : Query::kNextExecutable;
}

// The executable mappings of a process, one after the other.
class MapsQuery {
 public:
  MapsQuery(int maps, Query how) : maps_(maps), how_(how) {}

  // False with errno when there is none, or no such call.
  bool Next(uint64_t from) {
    if (how_ == Query::kEachMapping && !PassOver(from)) return false;
    query_ = {};
    query_.query_flags = kExecutable | kCoveringOrNext;
    query_.query_addr = from;
    query_.vma_name_size = static_cast<uint32_t>(name_.size());
    query_.vma_name_addr = PointerValue(name_.data());
    return Ask();
  }
  const ProcmapQuery& found() const { return query_; }
  const char* name() const { return name_.data(); }

 private:
  bool Ask() { return ::ioctl(maps_, kProcmapQuery, &query_) == 0; }

  // Moves `from` up to the next executable one.
  bool PassOver(uint64_t& from) {
    for (;;) {
      query_ = {};
      query_.query_flags = kCoveringOrNext;
      query_.query_addr = from;
      if (!Ask()) return false;
      if ((query_.vma_flags & kExecutable) != 0 || query_.vma_end <= from) {
        return true;
      }
      from = query_.vma_end;
    }
  }

  const int maps_;
  const Query how_;
  ProcmapQuery query_;
  std::array<char, kMaxOnePathBytes> name_;
};

Mapping MappingOf(const ProcmapQuery& query, const char* name) {
  Mapping mapping;
  mapping.start = {query.vma_start};
  mapping.end = {query.vma_end};
  mapping.file_offset = {query.vma_offset};
  mapping.device_major = query.dev_major;
  mapping.device_minor = query.dev_minor;
  mapping.inode = query.inode;
  if (query.vma_name_size > 1) mapping.path = name;
  return mapping;
}

// Empty when the kernel has no PROCMAP_QUERY, or a mapping it cannot tell.
std::optional<std::vector<Mapping>> QueryMaps(int maps, Query how,
                                              const MapsLimits& limits) {
  MapsCollector mappings(limits);
  MapsQuery query(maps, how);
  uint64_t from = 0;
  while (query.Next(from)) {
    // An answer that does not go on would keep this loop for ever.
    if (query.found().vma_end <= from) return std::nullopt;
    if (!mappings.Add(MappingOf(query.found(), query.name()))) {
      return std::move(mappings).Take();
    }
    from = query.found().vma_end;
  }
  // ESRCH: the process has no memory any more, or never had.
  if (errno != ENOENT && errno != ESRCH) return std::nullopt;
  return std::move(mappings).Take();
}

// A directory below /proc.
Result<std::vector<Mapping>> ReadMapsFile(const std::string& directory,
                                          Query how, const MapsLimits& limits) {
  const std::string path = directory + "/maps";
  const auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  if (auto mappings = QueryMaps(fd->get(), how, limits)) {
    return std::move(*mappings);
  }
  MapsCollector mappings(limits);
  Address end;
  const auto read = ForEachBlockOfLines(fd->get(), [&](std::string_view lines) {
    for (Mapping& mapping : ParseMaps(lines, nullptr)) {
      if (mapping.start < end) continue;
      end = mapping.end;
      if (!mappings.Add(std::move(mapping))) return false;
    }
    return true;
  });
  if (!read) return Fail(Error(read.error()).WithContext(path));
  return std::move(mappings).Take();
}

// The kernel shows paths as they are from the reader's root.
void StripRoot(const std::string& directory, std::vector<Mapping>& mappings) {
  std::array<char, kMaxOnePathBytes> buffer;
  const std::string link = directory + "/root";
  const ssize_t size = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (size <= 1) return;
  const std::string_view root(buffer.data(), static_cast<size_t>(size));
  PathPool stripped;
  for (Mapping& mapping : mappings) {
    const std::string_view path = mapping.path;
    if (path.starts_with(root) && path.substr(root.size()).starts_with('/')) {
      SharedPath rest(path.substr(root.size()));
      const SharedPath* known = stripped.Find(rest);
      if (known != nullptr) {
        rest = *known;
      } else {
        stripped.Add(rest);
      }
      mapping.path = std::move(rest);
    }
  }
}

std::string DirectoryOf(uint32_t pid) { return "/proc/" + std::to_string(pid); }

}  // namespace

std::vector<uint32_t> OtherThreads(uint32_t pid) {
  std::vector<uint32_t> threads;
  const std::string path = DirectoryOf(pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()),
                                                      &::closedir);
  if (directory == nullptr) return threads;
  while (const dirent* entry = ::readdir(directory.get())) {
    const auto thread = ParseUnsigned<uint32_t>(entry->d_name, 10);
    if (thread && *thread != pid) threads.push_back(*thread);
  }
  return threads;
}

Result<std::vector<Mapping>> ReadMaps(uint32_t pid, const MapsLimits& limits) {
  std::string directory = DirectoryOf(pid);
  const Query how = QueryFor(directory);
  auto mappings = ReadMapsFile(directory, how, limits);
  if (!mappings) return mappings;
  if (mappings->empty()) {
    for (const uint32_t thread : OtherThreads(pid)) {
      const std::string other = directory + "/task/" + std::to_string(thread);
      auto of_thread = ReadMapsFile(other, how, limits);
      if (!of_thread || of_thread->empty()) continue;
      mappings = std::move(of_thread);
      directory = other;
      break;
    }
  }
  StripRoot(directory, *mappings);
  return mappings;
}

std::string ReadMappedBuildId(uint32_t thread, const Mapping& mapping) {
  const auto fd = OpenForRead(DirectoryOf(thread) + "/maps");
  if (!fd) return {};
  std::array<char, 20> build_id;  // what the kernel keeps of it
  ProcmapQuery query;
  query.query_addr = mapping.start.value;
  query.build_id_size = build_id.size();
  query.build_id_addr = PointerValue(build_id.data());
  if (::ioctl(fd->get(), kProcmapQuery, &query) != 0 ||
      query.inode != mapping.inode || query.build_id_size > build_id.size()) {
    return {};
  }
  return {build_id.data(), query.build_id_size};
}

}  // namespace ksym
