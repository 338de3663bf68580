// SPDX-License-Identifier: Apache-2.0
#include "ksym/debug_file_search.h"

#include <utility>

#include "ksym/program_files.h"

namespace ksym {

DebugFileFinder MakeDebugFileFinder(
    const SymbolFile& file, const SymbolizerOptions& options,
    DebugFileSource fetch, std::shared_ptr<DebugFileChecksums> checksums) {
  std::string file_path(file.path);
  if (options.program_files != nullptr) {
    return {std::move(file_path),
            [files = options.program_files](const std::string& path) {
              return files->OpenDebugFile(path);
            },
            std::move(fetch), std::move(checksums)};
  }
  const auto open =
      [files = options.files, opener = options.opener,
       pid = file.read_for.pid](const std::string& path) -> Result<ByteSource> {
    Result<OpenedFile> opened = Fail(ErrorCode::kNotFound, path);
    if (files == SymbolizerOptions::Files::kOfProcess) {
      opened = opener->OpenPath(pid, path, Links::kFollowInside);
    }
    const bool host = files == SymbolizerOptions::Files::kOfHost ||
                      path.starts_with(kBuildIdDirectory);
    if (!opened && host) {
      opened = opener->OpenPath(0, path, Links::kFollowInside);
    }
    if (!opened) return Fail(std::move(opened.error()));
    return ByteSource::OfFile(
        std::move(opened->fd), opened->size,
        {.owner = OwnerOfCopy(*opened), .room = std::move(opened->room)});
  };
  return {std::move(file_path), OnlyTrusted(file.owner, open), std::move(fetch),
          std::move(checksums)};
}

DebugFileFinder WatchRefusals(DebugFileFinder finder, std::string& refusal) {
  if (!finder.open) return finder;
  finder.open = [&refusal,
                 open = std::move(finder.open)](const std::string& path) {
    auto source = open(path);
    // OnlyTrusted() has no errno, which tells it from a file that may not be
    // read.
    const bool is_untrusted = !source &&
                              source.error().code() == ErrorCode::kPermission &&
                              source.error().sys_errno() == 0;
    if (is_untrusted) refusal = source.error().message();
    return source;
  };
  return finder;
}

}  // namespace ksym
