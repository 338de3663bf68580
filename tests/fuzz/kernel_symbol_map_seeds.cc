// SPDX-License-Identifier: Apache-2.0
// Makes the seeds of kernel_symbol_map_fuzz for the map's present layout:
//
//   kernel_symbol_map_seeds tests/fuzz/corpus          writes them
//   kernel_symbol_map_seeds --check tests/fuzz/corpus  fails if one differs
//
// Maps of the listings that are seeds of kallsyms_text_fuzz, of some more, and
// maps that no listing gives but a damaged file may hold. Inputs that fuzzing
// has found are named by their hash and left alone.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/map_encoder.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/map_records.h"
#include "tests/ksym/kernel/kernel_tables.h"

namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kMaxBytes = size_t{1} << 20;

template <typename T>
T Must(ksym::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::exit(2);
  }
  return std::move(*result);
}

Bytes MapOf(std::string_view listing) {
  const auto map = Must(ksym::LoadKallsyms(ksym_test::FdOf(listing).get()));
  return {map.bytes().begin(), map.bytes().end()};
}

// More aliases than blocks have entries, each with padding of its own.
std::string PaddingAmongAliases() {
  std::ostringstream text;
  text << "1000 T _stext\n1000 t before\n";
  for (int i = 0; i < 12; ++i) {
    text << "2010 W alias_" << i << "\n2000 W __pfx_alias_" << i << '\n';
  }
  text << "2010 T best\n2000 T __pfx_best\n2020 t after\n3000 T _etext\n";
  return text.str();
}

std::string Modules() {
  std::ostringstream text;
  text << "0 A fixed_percpu_data\nffffffff81000000 T _stext\n"
          "ffffffff81000000 T start_kernel\nffffffff81800000 T _etext\n"
          "ffffffff82000000 D jiffies\n";
  int place = 100;
  for (const char* module : {"ext4", "zram", "bpf", "xfs"}) {
    const auto add = [&](const char* rest, const char* name) {
      text << "ffffffffc0" << place << rest << name << "\t[" << module << "]\n";
    };
    add("000 t ", "first");
    add("040 T ", "read.cold");
    add("800 d ", "__key.1");
    add("900 r ", "__func__.2");
    ++place;
  }
  return text.str();
}

struct Symbol {
  uint64_t address;
  const char* name;
  uint32_t flags;
};

// A map that is encoded as it stands, without the steps that put symbols in
// order and split unsafe padding.
Bytes Unarranged(std::initializer_list<Symbol> symbols) {
  ksym::MapRecords records;
  records.modules.emplace_back();
  records.prefix_distance = 16;
  for (const Symbol& symbol : symbols) {
    ksym::MapRecord record;
    record.address = symbol.address;
    record.packed = ksym::MapRecord::Kind(0, 't') << 5 | symbol.flags;
    record.first_token = static_cast<uint32_t>(records.tokens.size());
    records.interner.Tokenize(symbol.name, records.tokens);
    records.records.push_back(record);
    records.max_name_bytes = 32;
  }
  const auto map = Must(ksym::EncodeMap(std::move(records), symbols.size()));
  return {map.begin(), map.end()};
}

// The header says that there are none, but the blocks are there.
Bytes NoEntries() {
  Bytes bytes = MapOf("1000 T one\n2000 T two\n3000 T _etext\n");
  ksym::MapHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.entry_count = 0;
  header.symbol_count = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  header.checksum = ksym::MapChecksum(bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

std::map<std::string, Bytes> MakeSeeds(const std::filesystem::path& corpus) {
  std::map<std::string, Bytes> seeds;
  for (const char* name : {"three_symbols", "kernel", "debian", "nm"}) {
    const auto path = corpus / "kallsyms_text_fuzz" / name;
    seeds[name] = MapOf(Must(ksym::ReadFile(path, kMaxBytes)));
  }
  seeds["modules"] = MapOf(Modules());
  seeds["padding_among_aliases"] = MapOf(PaddingAmongAliases());
  seeds["empty"] = MapOf("");
  seeds["no_entries"] = NoEntries();
  constexpr uint32_t kPrefixed = ksym::MapRecord::kPrefixed;
  seeds["padding_of_second_alias"] = Unarranged(
      {{0x1000, "a", 0}, {0x2000, "b", 0}, {0x2000, "c", kPrefixed}});
  seeds["padding_over_symbol"] =
      Unarranged({{0x1000, "a", 0}, {0x1008, "b", kPrefixed}});
  seeds["descending"] = Unarranged({{0x2000, "a", 0}, {0x1000, "b", 0}});
  return seeds;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != (check ? 3 : 2)) {
    std::fprintf(stderr, "usage: %s [--check] CORPUS\n", argv[0]);
    return 2;
  }
  const std::filesystem::path corpus = argv[argc - 1];
  int differing = 0;
  for (const auto& [name, bytes] : MakeSeeds(corpus)) {
    const std::string path = corpus / "kernel_symbol_map_fuzz" / name;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                bytes.size());
    if (check) {
      const auto file = ksym::ReadFile(path, kMaxBytes);
      if (file && *file == text) continue;
      std::fprintf(stderr, "%s: is not what the layout gives\n", path.c_str());
      ++differing;
    } else {
      auto file = Must(ksym::AtomicFile::Create(path));
      if (!file.Write(text) || !file.Commit()) return 2;
    }
  }
  return differing == 0 ? 0 : 1;
}
