#include "daemon/oneshot/report_steps.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include "daemon/base/open_files.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/output/format.h"
#include "daemon/output/markup.h"
#include "daemon/profile/table_memory.h"

namespace profd {
namespace {

using ksym::Status;

// The end of both writers.
Status Commit(Status written, ReportFile& file) {
  if (written) written = file.Commit();
  if (!written && written.error().sys_errno() == EPIPE) return {};
  return written;
}

}  // namespace

ksym::SymbolizerOptions MakeSymbolizerOptions(
    const ProfileOptions& options, ksym::SymbolizerOptions::Files files,
    std::string vdso_image) {
  ksym::SymbolizerOptions made;
  made.demangle = options.demangle ? ksym::SymbolizerOptions::Demangle::kOn
                                   : ksym::SymbolizerOptions::Demangle::kOff;
  made.files = files;
  made.opener = options.capture.opener;
  // A capture raises the limit to what is allowed.
  made.max_open_files = MaxMappedFiles(
      files == ksym::SymbolizerOptions::Files::kOfProcess ? LimitOf::kHard
                                                          : LimitOf::kSoft);
  made.cache_bytes = options.symbol_cache_bytes;
  made.table_room = TableMemory::OfProcess();
  made.vdso_image = std::move(vdso_image);
  return made;
}

ResolveOptions MakeResolveOptions(const ProfileOptions& options) {
  ResolveOptions made;
  if (options.output.addresses) {
    made.addresses = ResolveOptions::Addresses::kKeep;
  }
  if (options.inlines || options.lines) {
    made.kernel_offsets = ResolveOptions::KernelOffsets::kKeep;
  }
  if (!options.demangle) {
    made.demangle = ksym::SymbolizerOptions::Demangle::kOff;
  }
  return made;
}

Status WriteReport(const Profile& profile, const ProfileOptions& options,
                   ReportFile& file) {
  auto written =
      Write(profile, options.format, options.output,
            [&](std::string_view piece) { return file.Append(piece); });
  return Commit(std::move(written), file);
}

Status WriteMarkupReport(const RawCapture& capture, ReportFile& file) {
  OutputBuffer out([&](std::string_view piece) { return file.Append(piece); });
  WriteMarkup(capture, out);
  return Commit(out.Finish(), file);
}

void SayWarnings(const Profile& profile, size_t said, Progress& progress) {
  const auto& warnings = profile.metadata.warnings;
  for (size_t i = said; i < warnings.size(); ++i) {
    progress.Say("warning: " + warnings[i]);
  }
}

int StatusOf(const Profile& profile, const ProfileOptions& options) {
  return options.strict && profile.accounting.AnythingLost() ? kExitLoss
                                                             : kExitOk;
}

}  // namespace profd
