// SPDX-License-Identifier: Apache-2.0
// Every symbol and every gap of two real tables, against a reference that is
// slow and simple (kernel_tables.h).

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ksym/kernel/kallsyms_blob.h"
#include "ksym/kernel/kallsyms_blob_writer.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/kernel_name_index.h"
#include "tests/ksym/kernel/kernel_tables.h"
#include "tests/ksym/sanitized.h"

namespace ksym_test {
namespace {

using ksym::Address;
using ksym::KernelSymbol;

enum class Which { kRunning, kDebian };

class RealTable : public testing::TestWithParam<Which> {
 protected:
  void SetUp() override {
    if (GetParam() == Which::kRunning) {
      if (ksym::kIsSanitized) GTEST_SKIP() << "takes too long with a sanitizer";
      auto text = RunningTable();
      if (!text) GTEST_SKIP() << text.error().message();
      text_ = std::move(*text);
    } else {
      text_ = DebianTable();
    }
    symbols_ = SortedSymbols(text_);
  }

  ksym::KernelSymbolMap Load() const {
    auto map = ksym::LoadKallsyms(FdOf(text_).get());
    if (!map) throw std::runtime_error(map.error().message());
    return std::move(*map);
  }

  std::string text_;
  std::vector<TableSymbol> symbols_;
};

TableSymbol Copy(const KernelSymbol& symbol) {
  return {symbol.start.value, symbol.type, std::string(symbol.name),
          std::string(symbol.module)};
}

// Iteration gives back every symbol, type and module, in order.
TEST_P(RealTable, IterationReproducesTheInput) {
  const auto map = Load();
  EXPECT_EQ(map.symbol_count(), symbols_.size());
  ksym::SymbolNameBuffer buffer;
  size_t next = 0;
  size_t different = 0;
  map.ForEach(buffer, [&](const KernelSymbol& symbol) {
    if (next >= symbols_.size() || Copy(symbol) != symbols_[next]) {
      if (different++ == 0) ADD_FAILURE() << "first at " << symbol.name;
    }
    ++next;
    return true;
  });
  EXPECT_EQ(next, symbols_.size());
  EXPECT_EQ(different, 0u);
}

std::string Expected(const ReferenceRange& range, uint64_t address) {
  if (!range.answers) return "none";
  return range.symbol.name + "+" + std::to_string(address - range.start) + "/" +
         std::to_string(range.end - range.start) + " " + range.symbol.type +
         " [" + range.symbol.module + "]" + (range.in_prefix ? " prefix" : "");
}

std::string Answer(const std::optional<KernelSymbol>& symbol) {
  if (!symbol) return "none";
  return std::string(symbol->name) + "+" + std::to_string(symbol->offset) +
         "/" + std::to_string(symbol->size) + " " + symbol->type + " [" +
         std::string(symbol->module) + "]" +
         (symbol->in_prefix ? " prefix" : "");
}

// The first, a middle and the last byte of every symbol and of every gap have
// the reference's answer: name, offset, size, type, module.
TEST_P(RealTable, EveryRangeResolvesAsTheReferenceSays) {
  const auto map = Load();
  ksym::SymbolNameBuffer buffer;
  size_t different = 0;
  size_t answers = 0;
  for (const ReferenceRange& range : ReferenceRanges(symbols_)) {
    const uint64_t size = range.end - range.start;
    answers += range.answers ? 1 : 0;
    for (const uint64_t offset : {uint64_t{0}, size / 2, size - 1}) {
      const uint64_t address = range.start + offset;
      const auto found = map.Find(Address{address}, buffer);
      const std::string answer = Answer(found);
      if (answer != Expected(range, address) && different++ < 10) {
        ADD_FAILURE() << std::hex << address << ": " << answer << ", not "
                      << Expected(range, address);
      }
    }
  }
  EXPECT_EQ(different, 0u);
  EXPECT_GT(answers, 60000u);
}

// Every name finds all of its addresses and no other.
TEST_P(RealTable, EveryNameFindsItsAddresses) {
  const auto map = Load();
  const ksym::KernelNameIndex index(map);
  std::map<std::string, std::vector<Address>> names;
  for (const TableSymbol& symbol : symbols_) {
    names[symbol.name].push_back(Address{symbol.address});
  }
  size_t different = 0;
  size_t scanned = 0;
  for (const auto& [name, addresses] : names) {
    if (index.Find(map, name) != addresses && different++ < 10) {
      ADD_FAILURE() << name;
    }
    // The scan decodes everything: only some names.
    if (scanned++ % 8192 == 0) {
      EXPECT_EQ(map.FindByName(name), addresses);
    }
  }
  EXPECT_EQ(different, 0u);
  EXPECT_TRUE(index.Find(map, "no such name").empty());
}

// The size goals: 5.0 bytes per symbol of a kernel with padding symbols, 8.5
// of one with modules and data, with what is allocated beside the buffer.
TEST_P(RealTable, BytesPerSymbol) {
  const auto map = Load();
  const double bytes = static_cast<double>(map.memory_bytes());
  const double limit = GetParam() == Which::kDebian ? 8.5 : 5.0;
  EXPECT_LE(bytes / static_cast<double>(map.symbol_count()), limit);
}

// A blob resolves every symbol within the text, bounded by the next address,
// and every name finds its addresses.
TEST_P(RealTable, BlobResolvesEverySymbol) {
  std::vector<ksym::BlobSymbol> input;
  std::map<std::string, std::vector<Address>> names;
  for (const TableSymbol& symbol : symbols_) {
    input.push_back({Address{symbol.address}, symbol.type, symbol.name});
    names[symbol.name].push_back(Address{symbol.address});
  }
  const auto bytes = ksym::WriteKallsymsBlob(input);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const auto stext = names.at("_stext").front();
  const auto etext = names.at("_etext").front();
  const auto blob = ksym::KallsymsBlob::FromBlob(*bytes, stext, etext);
  ASSERT_TRUE(blob) << blob.error().message();
  ksym::SymbolNameBuffer buffer;
  size_t different = 0;
  for (size_t begin = 0; begin < symbols_.size();) {
    size_t end = begin;
    while (end < symbols_.size() &&
           symbols_[end].address == symbols_[begin].address) {
      ++end;
    }
    const Address start = {symbols_[begin].address};
    const Address next =
        end == symbols_.size() ? start + 1 : Address{symbols_[end].address};
    const bool inside = start >= stext && start < etext;
    for (const Address address : {start, next - 1}) {
      const auto found = blob->LookupAddress(address, buffer);
      if (found.has_value() != inside ||
          (inside &&
           (found->name != symbols_[begin].name || found->start != start ||
            found->size != std::min(next, etext) - start))) {
        ++different;
      }
    }
    begin = end;
  }
  EXPECT_EQ(different, 0u);
  for (const auto& [name, addresses] : names) {
    if (blob->LookupNames(name) != addresses) ++different;
  }
  EXPECT_EQ(different, 0u);
}

INSTANTIATE_TEST_SUITE_P(Tables, RealTable,
                         testing::Values(Which::kRunning, Which::kDebian),
                         [](const auto& which) {
                           return which.param == Which::kRunning ? "Running"
                                                                 : "Debian";
                         });

}  // namespace
}  // namespace ksym_test
