// SPDX-License-Identifier: Apache-2.0
#include "gen/gsym_inspect.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/printable.h"
#include "ksym/elf/elf_image.h"
#include "ksym/gsym/gsym_decode.h"
#include "ksym/gsym/gsym_file.h"

namespace gen {
namespace {

using Writer = std::function<void(std::string_view)>;

std::string Path(const ksym::GsymFile& file, uint32_t index) {
  const auto path = file.FindFile(index);
  if (!path || (path->directory.empty() && path->base.empty())) return "?";
  const std::string slash =
      path->directory.empty() || path->directory.ends_with('/') ? "" : "/";
  return ksym::Printable(std::string(path->directory) + slash +
                         std::string(path->base));
}

void DumpHeader(const ksym::GsymFile& file, const Writer& write) {
  write(fmt::format(
      "version {}\nbyte order {}\nuuid {}\nfunctions {}\n"
      "files {}\naddress bytes {}\nstring bytes {}\n",
      static_cast<int>(file.version()),
      file.byte_order() == std::endian::little ? "little" : "big",
      ksym::ToHex(file.uuid()), file.function_count(), file.file_count(),
      file.address_bytes(), file.strings().size()));
}

// One function, its lines, its inlined calls and what has the same code.
void DumpFunction(const ksym::GsymFile& file,
                  const ksym::GsymFunction& function, const Writer& write) {
  const uint64_t start = function.start.value;
  write(fmt::format("\n{:#x}-{:#x} {}\n", start, start + function.size,
                    ksym::Printable(function.name)));
  for (const ksym::LineRow& row : function.lines) {
    write(fmt::format("  {:#x} {}:{}\n", row.address, Path(file, row.file),
                      row.line));
  }
  for (const ksym::InlinedCall& call : function.inlines) {
    std::string line = fmt::format(
        "  {:{}}inlined {} at {}:{}", "", 2 * (call.depth - 1),
        ksym::Printable(call.name), Path(file, call.call_file), call.call_line);
    for (uint32_t i = 0; i < call.range_count; ++i) {
      const auto& range = function.ranges[call.first_range + i];
      line += fmt::format(" {:#x}-{:#x}", range.start, range.end);
    }
    write(line + "\n");
  }
  for (const ksym::GsymCallSite& site : function.call_sites) {
    std::string line =
        fmt::format("  call returning to {:#x}:", start + site.return_offset);
    for (const auto pattern : site.patterns)
      line += " " + ksym::Printable(pattern);
    write(line + "\n");
  }
  for (const ksym::GsymFunction& merged : function.merged) {
    write(fmt::format("  same code: {}\n", ksym::Printable(merged.name)));
  }
}

ksym::Status Dump(const ksym::GsymFile& file, const Writer& write) {
  DumpHeader(file, write);
  for (uint32_t i = 0; i < file.function_count(); ++i) {
    const auto function = ksym::DecodeGsymFunction(file, i);
    if (!function) {
      return ksym::Fail(ksym::Error(function.error())
                            .WithContext(fmt::format("function {}", i)));
    }
    DumpFunction(file, *function, write);
  }
  return {};
}

ksym::Status Stats(const ksym::GsymFile& file, const Writer& write) {
  DumpHeader(file, write);
  uint64_t rows = 0;
  uint64_t calls = 0;
  uint64_t code = 0;
  uint64_t merged = 0;
  for (uint32_t i = 0; i < file.function_count(); ++i) {
    const auto function = ksym::DecodeGsymFunction(file, i);
    if (!function) return ksym::Fail(function.error());
    rows += function->lines.size();
    calls += function->inlines.size();
    code += function->size;
    merged += function->merged.size();
  }
  write(
      fmt::format("lines {}\ninlined calls {}\nmerged functions {}\n"
                  "code bytes {}\ntotal {}\n",
                  rows, calls, merged, code, file.bytes().size()));
  return {};
}

}  // namespace

ksym::Status InspectGsym(const GsymOptions& options, const Writer& write) {
  const auto text =
      ksym::ReadFile(options.input, std::numeric_limits<uint32_t>::max());
  if (!text) return ksym::Fail(text.error());
  const auto file = ksym::GsymFile::Parse(std::as_bytes(std::span(*text)));
  auto status = !file ? ksym::Status(ksym::Fail(file.error()))
                : options.action == GsymOptions::Action::kDump
                    ? Dump(*file, write)
                    : Stats(*file, write);
  if (status) return status;
  return ksym::Fail(std::move(status.error()).WithContext(options.input));
}

}  // namespace gen
