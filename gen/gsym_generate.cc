// SPDX-License-Identifier: Apache-2.0
#include "gen/gsym_generate.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "gen/unit_threads.h"
#include "ksym/base/file.h"
#include "ksym/base/output_file.h"
#include "ksym/gsym_convert.h"

namespace gen {
namespace {

void ReportBreakpadLosses(
    const ksym::BreakpadLosses& losses,
    const std::function<void(uint64_t, std::string_view)>& report) {
  report(losses.malformed_lines, "malformed lines, which are left out");
  report(losses.misplaced_lines, "lines of a function in front of any");
  report(losses.inlined_calls, "inlined calls outside of their caller");
  report(losses.publics, "PUBLIC symbols where another one is");
}

// One line per cause that lost something.
void ReportLosses(const ksym::GsymConversion& made, std::string_view input,
                  const GenerateHooks& hooks) {
  const auto report = [&](uint64_t count, std::string_view what) {
    if (count > 0) hooks.warn(fmt::format("{}: {} {}", input, count, what));
  };
  if (!made.dwarf_error.empty()) {
    hooks.warn(fmt::format("{}: debug data that cannot be read: {}", input,
                           made.dwarf_error));
  }
  const ksym::DwarfLosses& dwarf = made.dwarf_losses;
  report(dwarf.malformed_units, "malformed units, read up to the fault");
  report(dwarf.line_tables, "malformed line tables, read up to the fault");
  report(dwarf.split_files, "files with debug data that cannot be read");
  report(dwarf.ranges, "malformed range lists");
  report(dwarf.inlined_calls, "inlined calls in functions of too many pieces");
  report(dwarf.functions, "functions beyond bounds");
  ReportBreakpadLosses(made.breakpad_losses, report);
  for (const std::string& first : {dwarf.first, made.breakpad_losses.first}) {
    if (!first.empty()) hooks.warn(fmt::format("{}: first: {}", input, first));
  }
  const auto& file = made.file_losses;
  report(file.empty_functions, "functions without code, or of 4 GiB");
  report(file.rows, "lines outside of their function");
  report(file.inlined_calls, "inlined calls before their caller's code");
}

ksym::Status WriteWhole(const std::string& path,
                        const std::vector<std::byte>& bytes) {
  return ksym::WriteOutputFile(
      path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

ksym::Result<ksym::GsymConversion> ConvertBreakpad(
    const std::string& path, const ksym::GsymConvertOptions& options) {
  const auto text = ksym::ReadFile(path, kMaxBreakpadBytes);
  if (!text) return ksym::Fail(text.error());
  return ksym::ConvertBreakpadToGsym(*text, options);
}

}  // namespace

bool IsBreakpad(const ksym::ByteSource& source) {
  std::array<std::byte, 7> head = {};
  return source.ReadAt(0, head) &&
         ksym::BreakpadFile::IsBreakpad(
             {reinterpret_cast<const char*>(head.data()), head.size()});
}

ksym::Result<ksym::ByteSource> OpenSource(const std::string& path) {
  auto fd = ksym::OpenForRead(path);
  if (!fd) return ksym::Fail(std::move(fd.error()));
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return ksym::FailErrno(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return ksym::Fail(ksym::ErrorCode::kInvalid, path + ": not a regular file");
  }
  return ksym::ByteSource::OfFile(std::move(*fd),
                                  static_cast<uint64_t>(status.st_size));
}

ksym::DebugFileFinder FinderFor(const std::string& path,
                                const ksym::ByteSource& program) {
  // What lies beside the file does not lie beside a link to it.
  std::error_code ignored;
  const auto owner = program.owner();
  return {std::filesystem::canonical(path, ignored),
          // The program's owner decides whose debug files may name its code.
          owner ? ksym::OnlyTrusted(*owner, OpenSource) : nullptr};
}

ksym::Status GenerateGsymFile(const GsymOptions& options,
                              const GenerateHooks& hooks) {
  const auto source = OpenSource(options.input);
  if (!source) return ksym::Fail(source.error());
  ksym::GsymConvertOptions convert;
  convert.file.version = options.version;
  convert.dwarf = options.dwarf;
  convert.runner = RunUnitsOnThreads(options.threads, hooks.progress);
  const auto made =
      IsBreakpad(*source)
          ? ConvertBreakpad(options.input, convert)
          : ksym::ConvertElfToGsym(*source, FinderFor(options.input, *source),
                                   convert);
  if (!made) {
    return ksym::Fail(ksym::Error(made.error()).WithContext(options.input));
  }
  ReportLosses(*made, options.input, hooks);
  return WriteWhole(options.output, made->bytes);
}

}  // namespace gen
