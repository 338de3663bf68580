// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"

namespace ksym {

struct BlobSymbol {
  Address address;
  char type = 0;
  std::string name;  // not empty
};

// The bytes of a kallsyms blob (see KallsymsBlob and docs/kallsyms.md) of the
// symbols, in any order; aliases are stored by the alias rule, so that the
// best name answers. The same symbols give the same bytes. Errors name the
// symbol: kLimit when its payload is over 65,535 bytes, kUnsupported when it
// starts with the byte FF, which marks a token; kLimit when all names together
// are over 4 GiB.
Result<std::vector<std::byte>> WriteKallsymsBlob(
    std::vector<BlobSymbol> symbols);

}  // namespace ksym
