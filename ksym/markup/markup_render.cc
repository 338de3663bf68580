// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_render.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#include "ksym/base/text.h"
#include "ksym/markup/markup_fields.h"

namespace ksym {
namespace {

// What llvm-symbolizer prints for a name or a file that is not known.
constexpr std::string_view kInvalid = "<invalid>";

std::string_view OrInvalid(std::string_view text) {
  return text.empty() ? kInvalid : text;
}

// The end of the tag, where wrong numbers of fields are pointed out.
std::string_view TagEnd(const MarkupNode& element) {
  return element.tag.substr(element.tag.size());
}

std::string Counted(std::string_view expected, size_t count, size_t found) {
  return "expected " + std::string(expected) + std::to_string(count) +
         " field(s); found " + std::to_string(found);
}

bool IsLowercase(std::string_view tag) {
  return std::ranges::all_of(tag, [](char c) { return c >= 'a' && c <= 'z'; });
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

bool CheckFieldCount(const MarkupNode& element, size_t count,
                     MarkupReporter& reporter) {
  const size_t found = element.fields.size();
  if (found == count) return true;
  const std::string message = Counted("", count, found);
  if (found > count) {
    reporter.Warning(message, TagEnd(element));
    return true;
  }
  reporter.Error(message, TagEnd(element));
  return false;
}

bool CheckLeastFields(const MarkupNode& element, size_t count,
                      MarkupReporter& reporter) {
  const size_t found = element.fields.size();
  if (found >= count) return true;
  reporter.Error(Counted("at least ", count, found), TagEnd(element));
  return false;
}

void ReportWrongType(std::string_view field, std::string_view type,
                     MarkupReporter& reporter) {
  std::string message = "expected ";
  (((message += type) += "; found '") += field) += '\'';
  reporter.Error(message, field);
}

void MarkupRenderer::Print(const MarkupNode& node, std::string_view line_end) {
  if (!node.is_element()) {
    if (!parts_.printer.TryControlSequence(node.text)) {
      parts_.printer.Text(node.text);
    }
  } else if (!IsLowercase(node.tag)) {
    parts_.reporter.Error("tags must be all lowercase characters", node.tag);
  } else if (node.tag == "bt") {
    PrintFrames(node, line_end);
  } else if (node.tag == "pc") {
    PrintCode(node);
  } else if (node.tag == "data") {
    PrintData(node);
  } else if (node.tag == "symbol") {
    PrintSymbol(node);
  } else if (node.tag == "hexdict") {
    PrintHexDict(node);
  } else if (node.tag == "dumpfile") {
    PrintDumpFile(node);
  } else {
    parts_.printer.Text(node.text);
  }
}

void MarkupRenderer::Reset() {
  reported_modules_.clear();
  parts_.symbolizer.Reset();
}

void MarkupRenderer::PrintSymbol(const MarkupNode& element) {
  if (!CheckFieldCount(element, 1, parts_.reporter)) return;
  parts_.printer.Highlight();
  parts_.printer.Text(parts_.symbolizer.Demangle(element.fields[0]));
  parts_.printer.Restore();
}

std::optional<Address> MarkupRenderer::ParseAddress(std::string_view field) {
  const auto address = ParseMarkupAddress(field);
  if (!address) ReportWrongType(field, "address", parts_.reporter);
  return address;
}

std::optional<MarkupRenderer::Place> MarkupRenderer::FindPlace(
    const MarkupNode& element, Address address) {
  const MarkupMmap* mmap = parts_.context.FindMmap(address);
  if (mmap != nullptr) return Place{address, mmap};
  parts_.reporter.Error("no mmap covers address", element.fields[0]);
  parts_.printer.RawElement(element);
  return std::nullopt;
}

std::optional<MarkupRenderer::Place> MarkupRenderer::FindCode(
    const MarkupNode& element, CodeFields fields) {
  const auto address = ParseAddress(element.fields[fields.address]);
  if (!address) return std::nullopt;
  MarkupCode code = fields.otherwise;
  // With one field more than that, nobody can say which one is the kind.
  if (element.fields.size() == fields.address + 2) {
    const std::string_view kind = element.fields.back();
    if (kind != "ra" && kind != "pc") {
      ReportWrongType(kind, "PC type", parts_.reporter);
      return std::nullopt;
    }
    code = kind == "ra" ? MarkupCode::kReturnAddress : MarkupCode::kPrecise;
  }
  return FindPlace(
      element, code == MarkupCode::kReturnAddress ? *address - 1 : *address);
}

void MarkupRenderer::ReportMissing(const MarkupModule& module,
                                   const Error& error) {
  if (!reported_modules_.insert(module.id).second) return;
  std::array<char, 24> id = {};
  std::snprintf(id.data(), id.size(), "#0x%llx",
                static_cast<unsigned long long>(module.id));
  parts_.reporter.Message("error: " + error.message() + " for ELF module " +
                          id.data() + " \"" + module.name +
                          "\"; BuildID=" + module.build_id);
}

void MarkupRenderer::PrintCode(const MarkupNode& element) {
  if (!CheckLeastFields(element, 1, parts_.reporter)) return;
  if (element.fields.size() > 2) {
    parts_.reporter.Warning(Counted("at most ", 2, element.fields.size()),
                            TagEnd(element));
  }
  const auto place = FindCode(element, {0, MarkupCode::kPrecise});
  if (!place) return;
  const auto frames =
      parts_.symbolizer.ResolveCode(*place->mmap, place->address);
  if (!frames) ReportMissing(*place->mmap->module, frames.error());
  if (!frames || frames->empty()) {
    parts_.printer.RawElement(element);
    return;
  }
  MarkupPrinter& printer = parts_.printer;
  printer.Highlight();
  // The function that was compiled, with the line the address has in it. As
  // in LLVM, debug data alone give the one that was inlined.
  const MarkupFrame& inner = frames->front();
  const MarkupFrame& outer = frames->back();
  printer.Value(OrInvalid(outer.has_symbol ? outer.function : inner.function));
  printer.Text("[");
  printer.Value(OrInvalid(inner.file.empty() ? outer.symbol_file : inner.file));
  printer.Text(":");
  printer.Number(frames->front().line);
  printer.Text("]");
  printer.Restore();
}

void MarkupRenderer::PrintFrames(const MarkupNode& element,
                                 std::string_view line_end) {
  if (!CheckLeastFields(element, 2, parts_.reporter)) return;
  if (element.fields.size() > 3) {
    parts_.reporter.Warning(Counted("at most ", 3, element.fields.size()),
                            TagEnd(element));
  }
  const auto number = ParseUnsigned(element.fields[0], 10);
  if (!number) {
    ReportWrongType(element.fields[0], "frame number", parts_.reporter);
    return;
  }
  const auto place = FindCode(element, {1, MarkupCode::kReturnAddress});
  if (!place) return;
  const auto frames =
      parts_.symbolizer.ResolveCode(*place->mmap, place->address);
  if (!frames) {
    ReportMissing(*place->mmap->module, frames.error());
    parts_.printer.RawElement(element);
    return;
  }
  parts_.printer.Highlight();
  for (size_t i = 0; i < frames->size(); ++i) {
    const bool last = i + 1 == frames->size();
    PrintFrame(*number, *place, last ? 0 : i + 1);
    PrintLocation((*frames)[i]);
    PrintModule(*place);
    if (!last) parts_.printer.Text(line_end);
  }
  if (frames->empty()) {
    PrintFrame(*number, *place, 0);
    PrintModule(*place);
  }
  parts_.printer.Restore();
}

// "    #1.2  0x0000000000001139 ", without ".2" for the outermost.
void MarkupRenderer::PrintFrame(uint64_t number, const Place& place,
                                size_t inlined) {
  const std::string digits = std::to_string(number);
  constexpr size_t kDigits = 5;
  MarkupPrinter& printer = parts_.printer;
  std::string start(kDigits - std::min(kDigits, digits.size()), ' ');
  printer.Text(start += '#');
  printer.Value(digits);
  if (inlined == 0) {
    printer.Text("   ");
  } else {
    std::string index = std::to_string(inlined);
    if (index.size() < 2) index += ' ';
    printer.Text(".");
    printer.Value(index);
  }
  std::array<char, 32> address = {};
  std::snprintf(address.data(), address.size(), " 0x%016llx ",
                static_cast<unsigned long long>(place.address.value));
  printer.Value(address.data());
}

void MarkupRenderer::PrintLocation(const MarkupFrame& frame) {
  MarkupPrinter& printer = parts_.printer;
  printer.Value(OrInvalid(frame.function));
  printer.Text(" ");
  printer.Value(OrInvalid(frame.file));
  printer.Text(":");
  printer.Number(frame.line);
  printer.Text(":");
  printer.Number(frame.column);
  printer.Text(" ");
}

void MarkupRenderer::PrintModule(const Place& place) {
  MarkupPrinter& printer = parts_.printer;
  printer.Text("(");
  printer.Value(place.mmap->module->name);
  printer.Text("+");
  printer.Hex(place.mmap->ToModule(place.address).value);
  printer.Text(")");
}

void MarkupRenderer::PrintData(const MarkupNode& element) {
  if (!CheckFieldCount(element, 1, parts_.reporter)) return;
  const auto address = ParseAddress(element.fields[0]);
  if (!address) return;
  const auto place = FindPlace(element, *address);
  if (!place) return;
  const auto datum = parts_.symbolizer.ResolveData(*place->mmap, *address);
  if (!datum) {
    ReportMissing(*place->mmap->module, datum.error());
    parts_.printer.RawElement(element);
    return;
  }
  parts_.printer.Highlight();
  parts_.printer.Text(OrInvalid(datum->name));
  parts_.printer.Restore();
}

// The dump as it stands, with " <name+0x12>" behind each value that is an
// address in a module. A value is what follows a colon.
void MarkupRenderer::PrintHexDict(const MarkupNode& element) {
  MarkupPrinter& printer = parts_.printer;
  constexpr size_t kBraces = 3;
  std::string_view rest = element.text;
  rest.remove_prefix(kBraces + element.tag.size());
  rest.remove_suffix(kBraces);
  if (rest.starts_with(':')) rest.remove_prefix(1);
  printer.Highlight();
  printer.Text("[[[hexdict");
  if (!element.fields.empty()) printer.Text(":");
  while (!rest.empty()) {
    size_t value = std::min(rest.find(':'), rest.size() - 1) + 1;
    while (value < rest.size() && IsSpace(rest[value])) ++value;
    printer.Text(rest.substr(0, value));
    rest.remove_prefix(value);
    const auto* const end = std::ranges::find_if(rest, IsSpace);
    const auto size = static_cast<size_t>(end - rest.begin());
    PrintHexValue(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  printer.Text("]]]");
  printer.Restore();
}

void MarkupRenderer::PrintHexValue(std::string_view value) {
  MarkupPrinter& printer = parts_.printer;
  if (value.empty()) return;
  printer.Value(value);
  const auto address = ParseMarkupAddress(value);
  if (!address) return;
  const MarkupMmap* mmap = parts_.context.FindMmap(*address);
  if (mmap == nullptr) return;
  MarkupDatum datum;
  if (mmap->executable()) {
    const auto frames = parts_.symbolizer.ResolveCode(*mmap, *address);
    if (!frames) ReportMissing(*mmap->module, frames.error());
    if (frames && !frames->empty()) {
      datum = {frames->back().function, frames->back().offset};
    }
  } else {
    const auto found = parts_.symbolizer.ResolveData(*mmap, *address);
    if (!found) ReportMissing(*mmap->module, found.error());
    if (found) datum = *found;
  }
  if (datum.name.empty()) {
    datum = {mmap->module->name, mmap->ToModule(*address).value};
  }
  printer.Text(" <");
  printer.Value(datum.name);
  printer.Text("+");
  printer.Hex(datum.offset);
  printer.Text(">");
}

void MarkupRenderer::PrintDumpFile(const MarkupNode& element) {
  parts_.printer.Text(element.text);
  if (!CheckFieldCount(element, 2, parts_.reporter)) return;
  parts_.reporter.Message("note: the log names a dump file of type '" +
                          std::string(element.fields[0]) + "': '" +
                          std::string(element.fields[1]) + "'");
}

}  // namespace ksym
