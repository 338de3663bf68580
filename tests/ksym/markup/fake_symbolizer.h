// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/markup/markup_filter.h"
#include "ksym/markup/markup_symbolizer.h"

namespace ksym {

// Names by the address alone: two frames where it is even, one where it is
// odd, nothing in the module "empty", and no file of the module "missing".
class FakeMarkupSymbolizer : public MarkupSymbolizer {
 public:
  Result<std::span<const MarkupFrame>> ResolveCode(const MarkupMmap& mmap,
                                                   Address address) override {
    if (mmap.module->name == "missing") return Missing();
    frames_.clear();
    if (mmap.module->name == "empty") return frames_;
    const uint64_t at = mmap.ToModule(address).value;
    if (at % 2 == 0) {
      frames_.push_back({.function = "inlined",
                         .has_symbol = true,
                         .offset = 1,
                         .file = "i.h",
                         .line = 3,
                         .column = 4});
    }
    frames_.push_back({.function = "function",
                       .has_symbol = true,
                       .offset = at % 16,
                       .file = "f.c",
                       .line = 12,
                       .column = 7});
    return frames_;
  }
  Result<MarkupDatum> ResolveData(const MarkupMmap& mmap,
                                  Address address) override {
    if (mmap.module->name == "missing") return Missing();
    if (mmap.module->name == "empty") return MarkupDatum();
    return MarkupDatum{"variable", mmap.ToModule(address).value % 16};
  }
  std::string Demangle(std::string_view name) override {
    return "<" + std::string(name) + ">";
  }
  void Reset() override { ++resets; }

  int resets = 0;

 private:
  static std::unexpected<Error> Missing() {
    return Fail(ErrorCode::kNotFound, "could not find build ID");
  }

  std::vector<MarkupFrame> frames_;
};

class MarkupStrings : public MarkupOutput {
 public:
  void WriteLog(std::string_view text) override { log += text; }
  void WriteReport(std::string_view text) override { report += text; }

  std::string log;
  std::string report;
};

}  // namespace ksym
