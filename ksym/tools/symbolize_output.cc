#include "ksym/tools/symbolize_output.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "ksym/base/printable.h"

namespace ksym {
namespace {

// A JSON string; printable text needs no escapes but these.
std::string Quoted(std::string_view text) {
  std::string printable;
  AppendPrintable(text, printable);
  std::string quoted = "\"";
  for (const char c : printable) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string QuotedAddress(std::optional<uint64_t> address) {
  return address ? fmt::format("\"{:#x}\"", *address) : "\"\"";
}

}  // namespace

void AppendLlvmStyle(const AddressAnswer& answer, std::string& out) {
  if (answer.function.empty()) {
    out += "??";
  } else {
    AppendPrintable(answer.function, out);
  }
  out += "\n??:0:0\n\n";
}

void AppendJson(std::optional<uint64_t> address, const AddressAnswer& answer,
                std::string& out) {
  out += '{';
  if (address) out += "\"Address\":" + QuotedAddress(address) + ',';
  fmt::format_to(
      std::back_inserter(out),
      R"("ModuleName":{},"Symbol":[{{"Column":0,"Discriminator":0,)"
      R"("FileName":"","FunctionName":{},"Line":0,"StartAddress":{},)"
      R"("StartFileName":"","StartLine":0}}])",
      Quoted(answer.module), Quoted(answer.function),
      QuotedAddress(answer.symbol_start));
  if (!answer.reason.empty()) out += ",\"reason\":" + Quoted(answer.reason);
  out += '}';
}

}  // namespace ksym
