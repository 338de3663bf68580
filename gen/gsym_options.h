// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/dwarf/unit_reader.h"
#include "ksym/gsym/gsym_format.h"

namespace gen {

// What gen_gsym was asked to do.
struct GsymOptions {
  enum class Action : uint8_t {
    kConvert,
    kDump,
    kStats,
    kVerify,
    kPrint,  // text, as of --help
  };
  enum class Messages : uint8_t { kAll, kErrorsOnly };

  Action action = Action::kConvert;
  ksym::GsymVersion version = ksym::GsymVersion::k1;
  ksym::DwarfReadOptions dwarf;
  size_t threads = 1;
  Messages messages = Messages::kAll;
  std::string input;    // what is converted, dumped or verified
  std::string program;  // of kVerify: what it was made of
  std::string output;   // empty: the input's path and ".gsym"
  std::string text;     // of kPrint
};

// Parses the arguments after the program's name. kInvalid, with a text for the
// user, when they make no sense.
ksym::Result<GsymOptions> ParseGsymOptions(
    std::span<const std::string_view> arguments);

}  // namespace gen
