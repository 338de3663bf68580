// SPDX-License-Identifier: Apache-2.0
#include "ksym/build_id_claims.h"

#include <unistd.h>

#include "ksym/base/trust.h"

namespace ksym {

void BuildIdClaims::Add(SymbolFileList::iterator file) {
  const auto [at, is_new] =
      claims_.try_emplace(file->second.build_id, Claimed{file});
  Claimed& claimed = at->second;
  if (is_new || claimed.file == file) return;
  switch (Judge(claimed.file->second.owner, file->second.owner, ::geteuid())) {
    case Claim::kFirst:
      break;
    case Claim::kSecond:
      // Its word ends a dispute of others, too.
      claimed = {file};
      break;
    case Claim::kBoth:
      claimed.file = file;
      break;
    case Claim::kNeither:
      claimed.is_disputed = true;
      break;
  }
}

const BuildIdClaims::Claimed* BuildIdClaims::Find(
    std::string_view build_id) const {
  const auto found = claims_.find(build_id);
  return found == claims_.end() ? nullptr : &found->second;
}

}  // namespace ksym
