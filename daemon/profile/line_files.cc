#include "daemon/profile/line_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/profile/kernel_debug.h"
#include "ksym/gsym_convert.h"

namespace profd {
namespace {

// Whoever is profiled can have a file that is large and empty.
constexpr uint64_t kMaxFileBytes = uint64_t{4} << 30;

// "/bin/a, /bin/b and 3 more".
std::string List(std::span<const std::string> paths) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(paths.size(), kShown); ++i) {
    text += i == 0 ? "" : ", ";
    text += paths[i];
  }
  if (paths.size() > kShown) {
    text += " and " + std::to_string(paths.size() - kShown) + " more";
  }
  return text;
}

bool IsTrusted(const ksym::ByteSource& source) {
  struct stat status = {};
  return source.fd() >= 0 && ::fstat(source.fd(), &status) == 0 &&
         (status.st_uid == 0 || status.st_uid == ::geteuid());
}

// Refuses files that are too large; `all_trusted` becomes false when one is
// opened that is not.
ksym::DebugFileFinder Checked(ksym::DebugFileFinder finder, bool& all_trusted) {
  const auto checked = [&all_trusted](auto open) {
    return [&all_trusted, open = std::move(open)](
               const std::string& path) -> ksym::Result<ksym::ByteSource> {
      auto source = open(path);
      if (source && source->size() > kMaxFileBytes) {
        return ksym::Fail(ksym::ErrorCode::kLimit, path + ": too large");
      }
      if (source && !IsTrusted(*source)) all_trusted = false;
      return source;
    };
  };
  if (finder.open) finder.open = checked(std::move(finder.open));
  if (finder.fetch) finder.fetch = checked(std::move(finder.fetch));
  return finder;
}

const LineFile* PointerTo(const std::optional<LineFile>& file) {
  return file ? &*file : nullptr;
}

}  // namespace

LineFiles::LineFiles(const ksym::Symbolizer& symbolizer,
                     LineFilesOptions options)
    : symbolizer_(symbolizer), options_(std::move(options)) {
  if (options_.cache_directory.empty()) return;
  auto cache =
      ksym::GsymCache::Open(options_.cache_directory, options_.cache_bytes);
  if (cache) {
    cache_ = std::move(*cache);
  } else {
    cache_error_ = cache.error().message();
  }
}

const LineFile* LineFiles::Find(std::string_view build_id,
                                std::string_view path) {
  auto found = files_.find(build_id);
  if (found == files_.end()) {
    found = files_.emplace(build_id, Make(build_id, path)).first;
  }
  return PointerTo(found->second);
}

void LineFiles::Failed(std::string_view path, const ksym::Error& error) {
  ++counts_.failed;
  if (!first_failure_.empty()) return;
  first_failure_ = ksym::Error(error).WithContext(std::string(path)).message();
}

std::optional<LineFile> LineFiles::Make(std::string_view build_id,
                                        std::string_view path) {
  const auto program = symbolizer_.OpenAgain(build_id);
  if (!program) {
    Failed(path, program.error());
    return std::nullopt;
  }
  return Make(build_id, path, *program);
}

const LineFile* LineFiles::FindKernel(std::string_view release) {
  constexpr std::string_view kKey = "[kernel]";  // no build-id in hex
  auto found = files_.find(kKey);
  if (found != files_.end()) {
    return PointerTo(found->second);
  }
  std::optional<LineFile> made;
  const auto debug = FindKernelDebugFile(release, options_.kernel_paths,
                                         options_.kernel_notes_path);
  if (debug) {
    made = Make(debug->build_id, debug->path, debug->file);
    if (made) made->kernel_text = debug->text;
  } else {
    ++counts_.without_debug_data;
    bare_.push_back(debug.error().code() == ksym::ErrorCode::kInvalid
                        ? "[kernel], whose image is of another build"
                        : "[kernel]");
  }
  found = files_.emplace(kKey, std::move(made)).first;
  return PointerTo(found->second);
}

std::optional<LineFile> LineFiles::Make(
    std::string_view build_id, std::string_view path,
    const ksym::Symbolizer::ProgramFile& program) {
  const auto elf = ksym::ElfImage::Parse(program.source);
  if (!elf || program.source.size() > kMaxFileBytes) {
    Failed(path, elf ? ksym::Error(ksym::ErrorCode::kLimit, "too large")
                     : elf.error());
    return std::nullopt;
  }
  if (cache_) {
    auto image = cache_->Load(build_id);
    if (image) {
      ++counts_.from_cache;
      return LineFile{std::move(*image), elf->segments()};
    }
    if (image.error().code() == ksym::ErrorCode::kPermission) {
      cache_error_ = image.error().message();
    }
  }
  auto image = Convert(build_id, path, program);
  if (!image) return std::nullopt;
  return LineFile{std::move(*image), elf->segments()};
}

std::optional<ksym::GsymImage> LineFiles::Convert(
    std::string_view build_id, std::string_view path,
    const ksym::Symbolizer::ProgramFile& program) {
  const auto begin = Clock::now();
  bool is_trusted = IsTrusted(program.source);
  bool is_late = begin >= options_.deadline;
  ksym::GsymConvertOptions options;
  options.runner = [&](const ksym::UnitWork& work) {
    ksym::UnitFunctions unit;
    for (size_t i = 0; i < work.unit_count; ++i) {
      is_late = is_late || Clock::now() >= options_.deadline;
      if (is_late) return;
      work.read(i, unit);
      work.add(unit);
    }
  };
  auto made = is_late ? ksym::Result<ksym::GsymConversion>()
                      : ksym::ConvertElfToGsym(
                            program.source, Checked(program.finder, is_trusted),
                            options);
  counts_.milliseconds +=
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (is_late) {
    ++counts_.late;
    late_.emplace_back(path);
    return std::nullopt;
  }
  const bool is_bare = made ? !made->has_dwarf
                            : made.error().code() == ksym::ErrorCode::kNotFound;
  if (is_bare) {
    ++counts_.without_debug_data;
    bare_.emplace_back(path);
    return std::nullopt;
  }
  if (!made) {
    Failed(path, made.error());
    return std::nullopt;
  }
  ++counts_.converted;
  // What lacks files that may be there the next time is not kept.
  if (cache_ && is_trusted && made->dwarf_losses.split_files == 0) {
    const auto stored = cache_->Store(build_id, made->bytes);
    if (!stored) cache_error_ = stored.error().message();
  }
  auto image = ksym::GsymImage::OfMemory(std::move(made->bytes));
  if (!image) {
    Failed(path, image.error());
    return std::nullopt;
  }
  return std::move(*image);
}

std::vector<std::string> LineFiles::Warnings() const {
  std::vector<std::string> warnings;
  if (!bare_.empty()) {
    warnings.push_back(
        "neither lines nor inlined calls, for want of debug data (packages "
        "-dbgsym and -dbg have them, or --debuginfod): " +
        List(bare_));
  }
  if (!late_.empty()) {
    warnings.push_back(
        "neither lines nor inlined calls, because --symbol-timeout was over "
        "(files that were read are kept, so that another run gets further): " +
        List(late_));
  }
  if (!first_failure_.empty()) {
    warnings.push_back("neither lines nor inlined calls of " +
                       std::to_string(counts_.failed) +
                       " files: " + first_failure_);
  }
  if (!cache_error_.empty()) {
    warnings.push_back("the cache of debug data: " + cache_error_);
  }
  return warnings;
}

}  // namespace profd
