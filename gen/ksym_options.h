// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"

namespace gen {

// What gen_ksym was asked to do.
struct KsymOptions {
  enum class Action : uint8_t {
    kGenerate,
    kDump,
    kLookup,
    kName,
    kStats,
    kPrint,  // text, as of --help
  };
  enum class Format : uint8_t { kBlob, kCompact };
  enum class Names : uint8_t { kAsTheyAre, kDemangled };

  Action action = Action::kGenerate;
  Format format = Format::kBlob;
  Names names = Names::kAsTheyAre;
  std::string types;  // nm(1) letters to keep; empty: all
  std::optional<ksym::Address> stext;
  std::optional<ksym::Address> etext;
  std::string input;   // empty: standard input
  std::string output;  // empty: standard output
  std::vector<ksym::Address> addresses;
  std::vector<std::string> symbol_names;
  std::string text;  // of kPrint
};

// Parses the arguments after the program's name. kInvalid, with a text for the
// user, when they make no sense.
ksym::Result<KsymOptions> ParseKsymOptions(
    std::span<const std::string_view> arguments);

}  // namespace gen
