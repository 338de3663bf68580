// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

enum class OutputFormat : uint8_t {
  kFolded,
  kText,
  kJson,
  kPprof,
  kOtlp,
  kFlamegraph,
  kSvg,
  kSpeedscope,
  kPerfScript,
};

// Which kinds of samples the writer of a format is given.
enum class FormatKinds : uint8_t {
  kFirst,   // those of the first kind
  kChoice,  // all, among which its reader chooses, unless one was asked for
  kAll,
};

// What a format has of the stacks of threads that are parked.
enum class FormatParked : uint8_t {
  kOneFrame,  // one frame stands for them
  kBelow,     // they are below that frame, which its reader opens
  kMarked,    // they stand among the others and have a mark
};

// All that others ask about an output format. Messages, help, file names, HTTP
// and completion read the rows; nothing else lists formats.
struct FormatRow {
  OutputFormat format = OutputFormat::kFolded;
  std::string_view name;  // of --format and of the service's format=
  // With their dots; the first is the one that messages tell. Empty: no more.
  std::array<std::string_view, 2> extensions = {};
  std::string_view content_type;  // of HTTP (RFC 9110, section 8.3)
  bool is_text = true;            // a terminal may show it
  bool is_readable = false;       // daemon/input reads it again
  // Says of each sample which thread it is of, by a label; else samples of a
  // command are one unless others are asked for.
  bool has_threads = false;
  bool is_for_files = false;  // the service may write files of it
  FormatKinds kinds = FormatKinds::kFirst;
  FormatParked parked = FormatParked::kOneFrame;
  std::string_view sentence;  // what it is, without its full stop
  // Writes the profile; the same samples give the same bytes, whatever order
  // they come in.
  void (*write)(const Profile&, const OutputOptions&, OutputBuffer&) = nullptr;
};

// This program's formats in the order of --help; a row per OutputFormat.
std::span<const FormatRow> FormatRows();
const FormatRow& RowOf(OutputFormat format);

// The row of that name; null: there is none.
const FormatRow* FindFormat(std::string_view name,
                            std::span<const FormatRow> rows = FormatRows());
// The row with the longest extension that the path ends in; null: there is
// none.
const FormatRow* FindFormatOfPath(
    std::string_view path, std::span<const FormatRow> rows = FormatRows());

// The names of the formats that the service writes files in.
std::span<const std::string_view> FileFormats();

// "folded|json|...", for the type of an option.
std::string FormatChoices();
// "folded, json, text and pprof", for sentences; likewise the extensions.
std::string FormatList();
std::string ExtensionList();

}  // namespace profd
