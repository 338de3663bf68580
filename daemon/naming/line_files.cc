// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/line_files.h"

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/naming/line_convert.h"

namespace profd {
namespace {

constexpr std::string_view kKernelKey = "[kernel]";  // no build-id in hex
// For a service: each that has lines is a mapping.
constexpr size_t kMaxFiles = 8192;

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

// A file that is not in files_ was not asked for, or is to be asked for again;
// one without a value has no lines, or none so far, which TakeBuilt() changes.
const LineFile* LineFiles::Find(std::string_view build_id,
                                std::string_view path) {
  TakeBuilt();
  const auto found = files_.find(build_id);
  if (found != files_.end()) return PointerTo(found->second);
  has_to_ask_again_ = false;
  return Keep(build_id, Make(build_id, path));
}

const LineFile* LineFiles::Keep(std::string_view key,
                                std::optional<LineFile> made) {
  if (has_to_ask_again_) return nullptr;  // asked for again
  return PointerTo(files_.emplace(key, std::move(made)).first->second);
}

// Files that have been built meanwhile are looked for in the cache the next
// time.
void LineFiles::TakeBuilt() {
  if (options_.builder == nullptr) return;
  // A service sees new files for months.
  if (files_.size() + untrusted_.size() >= kMaxFiles) {
    files_.clear();
    bare_.clear();
    untrusted_.clear();
  }
  for (LineBuilder::Done& done : options_.builder->TakeDone()) {
    switch (done.outcome) {
      case LineBuilder::Outcome::kStored:
        // Forgotten, so that the next Find() gets it from the cache. The other
        // outcomes stay as they are in files_: without lines.
        ++counts_.converted;
        files_.erase(done.build_id);
        if (done.build_id == kernel_build_id_) {
          files_.erase(std::string(kKernelKey));
        }
        break;
      case LineBuilder::Outcome::kBare:
        ++counts_.without_debug_data;
        break;
      case LineBuilder::Outcome::kUntrusted:
        ++counts_.untrusted;
        break;
      case LineBuilder::Outcome::kFailed:
        Failed(done.path,
               ksym::Error(ksym::ErrorCode::kInvalid, std::move(done.error)));
        break;
    }
  }
}

void LineFiles::Failed(std::string_view path, const ksym::Error& error) {
  ++counts_.failed;
  if (!first_failure_.empty()) return;
  first_failure_ = ksym::Error(error).WithContext(std::string(path)).message();
}

// A trusted program may turn up that has the build-id as well.
void LineFiles::AskAgain(std::string_view build_id) {
  has_to_ask_again_ = true;
  if (untrusted_.emplace(build_id).second) ++counts_.untrusted;
}

std::optional<LineFile> LineFiles::Make(std::string_view build_id,
                                        std::string_view path) {
  auto program = symbolizer_.OpenAgain(build_id);
  if (!program) {
    const bool is_disputed =
        program.error().code() == ksym::ErrorCode::kPermission;
    if (is_disputed && options_.builder != nullptr) {
      AskAgain(build_id);
    } else {
      Failed(path, program.error());
    }
    return std::nullopt;
  }
  return Make(build_id, path, std::move(*program));
}

const LineFile* LineFiles::FindKernel() {
  TakeBuilt();
  const auto found = files_.find(kKernelKey);
  if (found != files_.end()) return PointerTo(found->second);
  has_to_ask_again_ = false;
  return Keep(kKernelKey, MakeKernel());
}

std::optional<LineFile> LineFiles::MakeKernel() {
  auto debug = FindKernelDebugFile(options_.kernel);
  if (!debug) {
    ++counts_.without_debug_data;
    bare_.push_back(debug.error().code() == ksym::ErrorCode::kInvalid
                        ? "[kernel], whose image is of another build"
                        : "[kernel]");
    return std::nullopt;
  }
  kernel_build_id_ = debug->build_id;
  auto made = Make(debug->build_id, debug->path, std::move(debug->file));
  if (made) {
    made->kernel_text = debug->text;
    made->is_same_kernel = debug->is_same_build;
  }
  return made;
}

const LineFile* LineFiles::FindModule(std::string_view name) {
  TakeBuilt();
  std::string build_id;
  if (options_.kernel.build_ids) build_id = options_.kernel.build_ids(name);
  const std::string key = build_id.empty() ? std::string(name) : build_id;
  const auto found = files_.find(key);
  if (found != files_.end()) return PointerTo(found->second);
  has_to_ask_again_ = false;
  return Keep(key, MakeModule(name, build_id));
}

std::optional<LineFile> LineFiles::MakeModule(std::string_view name,
                                              const std::string& build_id) {
  ksym::Result<ModuleDebugFile> debug =
      ksym::Fail(ksym::ErrorCode::kNotFound, "no build-id");
  if (!build_id.empty()) {
    debug = FindModuleDebugFile(options_.kernel, name, build_id);
  }
  if (!debug) {
    ++counts_.without_debug_data;
    bare_.push_back("[" + std::string(name) + "]");
    return std::nullopt;
  }
  auto made = Make(build_id, debug->path, std::move(debug->file));
  if (made) made->module = std::move(debug->symbols);
  return made;
}

std::optional<LineFile> LineFiles::Make(std::string_view build_id,
                                        std::string_view path,
                                        ksym::Symbolizer::ProgramFile program) {
  auto elf = ksym::ElfImage::Parse(program.source);
  if (!elf) {
    Failed(path, elf.error());
    return std::nullopt;
  }
  // The cache is asked before the file's trust: it holds trusted files only.
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
  if (options_.builder != nullptr) {
    if (!IsTrusted(program.source)) {
      AskAgain(build_id);
      return std::nullopt;
    }
    if (!options_.builder->Add(build_id, path, std::move(program))) {
      // Too many wait; this one is not even known to the builder.
      ++counts_.late;
      has_to_ask_again_ = true;
    }
    return std::nullopt;
  }
  auto image = Convert(build_id, path, program);
  if (!image) return std::nullopt;
  return LineFile{std::move(*image), elf->segments()};
}

std::optional<ksym::GsymImage> LineFiles::Convert(
    std::string_view build_id, std::string_view path,
    const ksym::Symbolizer::ProgramFile& program) {
  const auto begin = Clock::now();
  LineConversion made =
      ConvertLines(program, {.has_to_stop = [deadline = options_.deadline] {
                     return Clock::now() >= deadline;
                   }});
  counts_.milliseconds +=
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  switch (made.outcome) {
    case LineConversion::Outcome::kMade:
      break;
    case LineConversion::Outcome::kGivenUp:
      ++counts_.late;
      late_.emplace_back(path);
      return std::nullopt;
    case LineConversion::Outcome::kBare:
      ++counts_.without_debug_data;
      bare_.emplace_back(path);
      return std::nullopt;
    case LineConversion::Outcome::kFailed:
      Failed(path, {ksym::ErrorCode::kInvalid, std::move(made.error)});
      return std::nullopt;
  }
  ++counts_.converted;
  if (cache_ && made.can_be_kept) {
    const auto stored = cache_->Store(build_id, made.bytes);
    if (!stored) cache_error_ = stored.error().message();
  }
  auto image = ksym::GsymImage::OfMemory(std::move(made.bytes));
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
