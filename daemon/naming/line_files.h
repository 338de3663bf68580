// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/naming/kernel_debug.h"
#include "daemon/naming/line_builder.h"
#include "daemon/naming/module_symbols.h"
#include "ksym/elf/elf_image.h"
#include "ksym/gsym/gsym_image.h"
#include "ksym/gsym_cache.h"
#include "ksym/symbolizer.h"

namespace profd {

// Lines and inlined calls of one program, and where its headers place it.
struct LineFile {
  ksym::GsymImage image;
  std::vector<ksym::ElfSegment> segments;
  // For the kernel: the address of _stext, and whether the image is known to be
  // of the same build.
  uint64_t kernel_text = 0;
  bool is_same_kernel = false;
  // For a kernel module: where its functions are.
  std::optional<ModuleSymbols> module = {};
};

struct LineFilesOptions {
  std::string cache_directory;  // empty: nothing is kept for the next run
  uint64_t cache_bytes = uint64_t{1} << 30;
  // After this no conversion is begun, and one that runs is given up.
  std::chrono::steady_clock::time_point deadline;
  // The kernel that was sampled.
  KernelDebugPlaces kernel = {};
  // Makes what is not in the cache, while the answer is "none so far";
  // borrowed. Null: it is made at once.
  LineBuilder* builder = nullptr;
};

// The outcomes of the files that were asked for.
struct LineFileCounts {
  uint64_t from_cache = 0;
  uint64_t converted = 0;
  uint64_t without_debug_data = 0;
  uint64_t late = 0;       // not ready by the deadline; too many were waiting
  uint64_t untrusted = 0;  // of a builder: another user's, each once
  uint64_t failed = 0;     // not there any more, malformed, too large
  double milliseconds = 0;
};

// The lines of programs by build-id: from the cache, else converted from the
// DWARF of the program or its debug file, and kept in the cache if all of these
// are trusted (ksym/base/trust.h): others could give a file another's build-id.
// Borrows the symbolizer, which knows the files. For after a capture: a
// conversion takes seconds for a large program. Not thread-safe.
class LineFiles {
 public:
  // A cache that cannot be used is a warning.
  LineFiles(const ksym::Symbolizer& symbolizer, LineFilesOptions options);

  // Null when there are none, or with a builder none so far; `path` is for
  // messages. Asked for once per file. Valid until the next call.
  const LineFile* Find(std::string_view build_id, std::string_view path);

  // The file of the kernel's core.
  const LineFile* FindKernel();
  // The file of a kernel module as it is loaded; one whose build-id is not
  // known has none. Asked for once per build.
  const LineFile* FindModule(std::string_view name);

  const LineFileCounts& counts() const { return counts_; }
  // Says what was done without, and the cure, a sentence each.
  std::vector<std::string> Warnings() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<LineFile> Make(std::string_view build_id,
                               std::string_view path);
  std::optional<LineFile> Make(std::string_view build_id, std::string_view path,
                               ksym::Symbolizer::ProgramFile program);
  const LineFile* Keep(std::string_view key, std::optional<LineFile> made);
  std::optional<LineFile> MakeKernel();
  std::optional<LineFile> MakeModule(std::string_view name,
                                     const std::string& build_id);
  void TakeBuilt();
  void AskAgain(std::string_view build_id);
  std::optional<ksym::GsymImage> Convert(
      std::string_view build_id, std::string_view path,
      const ksym::Symbolizer::ProgramFile& program);
  void Failed(std::string_view path, const ksym::Error& error);

  const ksym::Symbolizer& symbolizer_;
  LineFilesOptions options_;
  std::optional<ksym::GsymCache> cache_;
  std::map<std::string, std::optional<LineFile>, std::less<>> files_;
  std::string kernel_build_id_;    // that was asked for last
  bool has_to_ask_again_ = false;  // as nothing came of the last Make()
  std::set<std::string, std::less<>> untrusted_;  // build-ids, of a builder
  LineFileCounts counts_;
  std::string cache_error_;
  std::string first_failure_;
  std::vector<std::string> late_;  // paths
  std::vector<std::string> bare_;  // those without debug data
};

}  // namespace profd
