// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_writer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ksym/base/printable.h"

namespace ksym {
namespace {

void AppendNumber(uint64_t value, int base, std::string& out) {
  std::array<char, 20> digits = {};
  const char* end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, base)
          .ptr;
  out.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

// The specification wants an even number of digits.
void AppendAddress(uint64_t value, std::string& out) {
  out += ":0x";
  const size_t digits = out.size();
  AppendNumber(value, 16, out);
  if ((out.size() - digits) % 2 != 0) out.insert(digits, 1, '0');
}

void AppendCodeKind(MarkupCode code, std::string& out) {
  out += code == MarkupCode::kPrecise ? ":pc}}}" : ":ra}}}";
}

}  // namespace

void AppendMarkupField(std::string_view text, std::string& out) {
  const size_t start = out.size();
  AppendPrintable(text, out);
  const auto breaks_field = [](char c) { return c == ':' || c == '}'; };
  std::replace_if(out.begin() + static_cast<std::ptrdiff_t>(start), out.end(),
                  breaks_field, '_');
}

void AppendMarkupReset(std::string& out) { out += "{{{reset}}}"; }

void AppendMarkupModule(const MarkupModule& module, std::string& out) {
  out += "{{{module:";
  AppendNumber(module.id, 10, out);
  out += ':';
  AppendMarkupField(module.name, out);
  out += ":elf:";
  AppendMarkupField(module.build_id, out);
  out += "}}}";
}

void AppendMarkupMmap(const MarkupMmap& mmap, std::string& out) {
  out += "{{{mmap";
  AppendAddress(mmap.address.value, out);
  out += ":0x";
  AppendNumber(mmap.size, 16, out);
  out += ":load:";
  AppendNumber(mmap.module->id, 10, out);
  out += ':';
  out += mmap.mode;
  AppendAddress(mmap.module_address.value, out);
  out += "}}}";
}

void AppendMarkupFrame(uint64_t number, Address address, MarkupCode code,
                       std::string& out) {
  out += "{{{bt:";
  AppendNumber(number, 10, out);
  AppendAddress(address.value, out);
  AppendCodeKind(code, out);
}

void AppendMarkupCode(Address address, MarkupCode code, std::string& out) {
  out += "{{{pc";
  AppendAddress(address.value, out);
  AppendCodeKind(code, out);
}

void AppendMarkupData(Address address, std::string& out) {
  out += "{{{data";
  AppendAddress(address.value, out);
  out += "}}}";
}

void AppendMarkupSymbol(std::string_view linkage_name, std::string& out) {
  out += "{{{symbol:";
  AppendMarkupField(linkage_name, out);
  out += "}}}";
}

void AppendMarkupDumpFile(std::string_view type, std::string_view name,
                          std::string& out) {
  out += "{{{dumpfile:";
  AppendMarkupField(type, out);
  out += ':';
  AppendMarkupField(name, out);
  out += "}}}";
}

}  // namespace ksym
