// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "ksym/base/address.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/markup/markup_context.h"
#include "ksym/markup/markup_parser.h"
#include "ksym/markup/markup_printer.h"
#include "ksym/markup/markup_reporter.h"
#include "ksym/markup/markup_symbolizer.h"
#include "ksym/markup/markup_writer.h"

namespace ksym {

// False, after a report: the element has fewer than `count` fields. More are a
// warning and are ignored.
bool CheckFieldCount(const MarkupNode& element, size_t count,
                     MarkupReporter& reporter);
bool CheckLeastFields(const MarkupNode& element, size_t count,
                      MarkupReporter& reporter);
// "expected size; found 'x'"
void ReportWrongType(std::string_view field, std::string_view type,
                     MarkupReporter& reporter);

// Prints the elements that stand for something to show: names in place of
// addresses. Borrows its arguments. Not thread-safe.
class MarkupRenderer {
 public:
  struct Parts {
    const MarkupContext& context;
    MarkupSymbolizer& symbolizer;
    MarkupPrinter& printer;
    MarkupReporter& reporter;
  };

  explicit MarkupRenderer(const Parts& parts) : parts_(parts) {}

  // Text, a control sequence or an element that is no context. Elements with
  // unknown tags are printed as they are; with tags that can be none, they are
  // reported and left out. `line_end` separates inlined frames.
  void Print(const MarkupNode& node, std::string_view line_end);
  // The context was reset.
  void Reset();

 private:
  void PrintSymbol(const MarkupNode& element);
  void PrintCode(const MarkupNode& element);
  void PrintFrames(const MarkupNode& element, std::string_view line_end);
  void PrintData(const MarkupNode& element);
  void PrintHexDict(const MarkupNode& element);
  void PrintHexValue(std::string_view value);
  void PrintDumpFile(const MarkupNode& element);

  struct Place {
    Address address;  // of the code meant, which is before a return address
    const MarkupMmap* mmap = nullptr;
  };
  struct CodeFields {
    size_t address = 0;  // index of the field
    MarkupCode otherwise = MarkupCode::kPrecise;
  };
  // Nothing: reported, and printed raw where an address is in no mmap.
  std::optional<Place> FindCode(const MarkupNode& element, CodeFields fields);
  std::optional<Place> FindPlace(const MarkupNode& element, Address address);
  std::optional<Address> ParseAddress(std::string_view field);
  void PrintFrame(uint64_t number, const Place& place, size_t inlined);
  void PrintLocation(const MarkupFrame& frame);
  void PrintModule(const Place& place);
  void ReportMissing(const MarkupModule& module, const Error& error);

  const Parts parts_;
  std::unordered_set<uint64_t, NumberHash> reported_modules_;
};

}  // namespace ksym
