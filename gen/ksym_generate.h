// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "gen/ksym_options.h"
#include "ksym/base/result.h"

namespace gen {

// Reads a listing from the descriptor and makes the table the options ask for.
// `input` is what messages call it. Fails at the first malformed line, with
// "INPUT:LINE: what".
ksym::Result<std::vector<std::byte>> GenerateKsym(int fd,
                                                  std::string_view input,
                                                  const KsymOptions& options);

// Opens options.input, generates, and writes to options.output (whole or not
// at all) or to standard output.
ksym::Status GenerateKsymFile(const KsymOptions& options);

}  // namespace gen
