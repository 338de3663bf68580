// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/symbolize_output.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "ksym/base/printable.h"

namespace ksym {
namespace {

// A JSON string; printable text needs no escapes but these.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : Printable(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string QuotedAddress(std::optional<uint64_t> address) {
  return address ? fmt::format("\"{:#x}\"", *address) : "\"\"";
}

void AppendText(const AnswerFrame& frame, std::string_view text,
                std::string& out) {
  if (frame.is_plain) {
    out += text;
  } else {
    AppendPrintable(text, out);
  }
}

// The file's path, or `unknown`.
void AppendPath(const AnswerFrame& frame, std::string_view unknown,
                std::string& out) {
  if (frame.file.empty()) {
    out += unknown;
    return;
  }
  if (!frame.directory.empty()) {
    AppendText(frame, frame.directory, out);
    if (!frame.directory.ends_with('/')) out += '/';
  }
  AppendText(frame, frame.file, out);
}

// "function\nfile:line" and what the style has behind it.
void AppendPlain(const AnswerFrame& frame, std::string_view end,
                 std::string& out) {
  AppendText(frame, frame.function.empty() ? "??" : frame.function, out);
  out += '\n';
  AppendPath(frame, "??", out);
  const fmt::format_int line(frame.line);
  out += ':';
  out.append(line.data(), line.size());
  out += end;
}

void AppendPlain(const AddressAnswer& answer, std::string_view end,
                 std::string& out) {
  if (answer.frames.empty()) AppendPlain(AnswerFrame(), end, out);
  for (const AnswerFrame& frame : answer.frames) AppendPlain(frame, end, out);
}

void AppendJsonFrame(const AnswerFrame& frame, std::optional<uint64_t> start,
                     std::string& out) {
  std::string path;
  AppendPath(frame, "", path);
  fmt::format_to(
      std::back_inserter(out),
      R"({{"Column":0,"Discriminator":0,"FileName":{},"FunctionName":{},)"
      R"("Line":{},"StartAddress":{},"StartFileName":"","StartLine":0}})",
      Quoted(path), Quoted(frame.function), frame.line, QuotedAddress(start));
}

}  // namespace

void AppendLlvmStyle(const AddressAnswer& answer, std::string& out) {
  AppendPlain(answer, ":0\n", out);
  out += '\n';
}

void AppendGnuStyle(const AddressAnswer& answer, std::string& out) {
  AppendPlain(answer, "\n", out);
}

void AppendJson(std::optional<uint64_t> address, const AddressAnswer& answer,
                std::string& out) {
  out += '{';
  if (address) out += "\"Address\":" + QuotedAddress(address) + ',';
  fmt::format_to(std::back_inserter(out), R"("ModuleName":{},"Symbol":[)",
                 Quoted(answer.module));
  if (answer.frames.empty()) AppendJsonFrame({}, std::nullopt, out);
  for (const AnswerFrame& frame : answer.frames) {
    const bool is_function = &frame == &answer.frames.back();
    AppendJsonFrame(frame, is_function ? answer.symbol_start : std::nullopt,
                    out);
    if (!is_function) out += ',';
  }
  out += ']';
  if (!answer.reason.empty()) out += ",\"reason\":" + Quoted(answer.reason);
  out += '}';
}

}  // namespace ksym
