// SPDX-License-Identifier: Apache-2.0
// Any bytes as a kallsyms blob: rejected, or every operation ends without a
// read outside of them, and lookups agree with iteration.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "ksym/kernel/kallsyms_blob.h"

namespace {

void Check(bool ok) {
  if (!ok) std::abort();
}

void CheckBlob(const ksym::KallsymsBlob& blob) {
  ksym::SymbolNameBuffer names;
  ksym::SymbolNameBuffer answers;
  size_t count = 0;
  blob.ForEach(names, [&](const ksym::KernelSymbol& symbol) {
    ++count;
    // The name order of hostile bytes is any order: names may not be found.
    Check(blob.LookupNames(symbol.name).size() <= blob.symbol_count());
    const auto found = blob.LookupAddress(symbol.start, answers);
    if (symbol.start < blob.stext() || symbol.start >= blob.etext()) {
      Check(!found);
    } else {
      Check(found && found->start == symbol.start && found->offset == 0);
    }
    return true;
  });
  Check(count == blob.symbol_count());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  constexpr ksym::Address kStart = {0x1000};
  constexpr ksym::Address kEnd = {0xffffffff90000000};
  const auto blob = ksym::KallsymsBlob::FromBlob(bytes, kStart, kEnd);
  if (!blob) return 0;
  CheckBlob(*blob);
  blob->LookupName("");
  blob->LookupName("do_fork");
  size_t lines = 0;
  blob->DumpAllSymbols([&](std::string_view) { ++lines; });
  Check(lines == blob->symbol_count());
  return 0;
}
