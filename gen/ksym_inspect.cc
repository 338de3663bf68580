// SPDX-License-Identifier: Apache-2.0
#include "gen/ksym_inspect.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "ksym/kernel/kernel_symbol_source.h"

namespace gen {
namespace {

using Writer = std::function<void(std::string_view)>;

std::string ModuleColumn(const ksym::KernelSymbol& symbol, char separator) {
  if (symbol.module.empty()) return {};
  return fmt::format("{}[{}]", separator, symbol.module);
}

void Dump(const ksym::KernelSymbolSource& source, const Writer& write) {
  ksym::SymbolNameBuffer buffer;
  source.ForEach(buffer, [&](const ksym::KernelSymbol& symbol) {
    write(fmt::format("{:016x} {} {}{}\n", symbol.start.value, symbol.type,
                      symbol.name, ModuleColumn(symbol, '\t')));
    return true;
  });
}

void Lookup(const ksym::KernelSymbolSource& source, const KsymOptions& options,
            const Writer& write) {
  ksym::SymbolNameBuffer buffer;
  for (const ksym::Address address : options.addresses) {
    const auto symbol = source.Find(
        address, buffer, {ksym::SymbolKinds::kAll, ksym::PrefixNames::kFold});
    if (!symbol) {
      write(fmt::format("{:016x} ?\n", address.value));
      continue;
    }
    write(fmt::format("{:016x} {}+{:#x}/{:#x}{}\n", address.value, symbol->name,
                      symbol->offset, symbol->size,
                      ModuleColumn(*symbol, ' ')));
  }
}

void FindNames(const ksym::KernelSymbolSource& source,
               const KsymOptions& options, const Writer& write) {
  for (const std::string& name : options.symbol_names) {
    const auto found = source.FindByName(name);
    if (found.empty()) write(fmt::format("{} ?\n", name));
    for (const ksym::Address address : found) {
      write(fmt::format("{} {:016x}\n", name, address.value));
    }
  }
}

void MapStats(const ksym::KernelSymbolMap& map, const Writer& write) {
  // In the order of MapSectionId.
  constexpr std::array<std::string_view, ksym::kMapSectionCount> kNames = {
      "blocks",      "block starts",  "whole offsets", "fine offsets",
      "segments",    "runs",          "modules",       "entry values",
      "name values", "token classes", "characters"};
  const ksym::MapHeader& header = map.tables().header();
  write(fmt::format("format compact\nsymbols {}\nentries {}\nheader {}\n",
                    header.symbol_count, header.entry_count,
                    header.header_bytes));
  for (size_t i = 0; i < kNames.size(); ++i) {
    write(fmt::format("{} {}\n", kNames[i], header.sections[i].size));
  }
}

void BlobStats(const ksym::KallsymsBlob& blob, const Writer& write) {
  const auto sections = blob.SectionBytes();
  write(
      fmt::format("format ksym\nsymbols {}\ntokens {}\n"
                  "addresses {}\noffsets {}\nname order {}\nnames {}\n"
                  "token table {}\ntoken index {}\n",
                  blob.symbol_count(), blob.token_count(), sections.addresses,
                  sections.offsets, sections.name_order, sections.names,
                  sections.tokens, sections.token_index));
}

void Stats(const ksym::KernelSymbolSource& source, const Writer& write) {
  size_t total = 0;
  if (const auto* map = source.map()) {
    MapStats(*map, write);
    total = map->bytes().size();
  } else {
    BlobStats(*source.blob(), write);
    total = source.blob()->bytes().size();
  }
  write(fmt::format("total {}\n", total));
  if (source.symbol_count() == 0) return;
  write(fmt::format(
      "bytes per symbol {:.3f}\n",
      static_cast<double>(total) / static_cast<double>(source.symbol_count())));
}

}  // namespace

ksym::Status InspectKsym(const KsymOptions& options, const Writer& write) {
  const auto source = ksym::OpenKernelSymbols(
      options.input, {.stext = options.stext, .etext = options.etext});
  if (!source) return ksym::Fail(source.error());
  switch (options.action) {
    case KsymOptions::Action::kDump:
      Dump(*source, write);
      break;
    case KsymOptions::Action::kLookup:
      Lookup(*source, options, write);
      break;
    case KsymOptions::Action::kName:
      FindNames(*source, options, write);
      break;
    default:
      Stats(*source, write);
      break;
  }
  return {};
}

}  // namespace gen
