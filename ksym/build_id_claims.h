// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <unordered_map>

#include "ksym/base/keyed_hash.h"
#include "ksym/symbol_file.h"

namespace ksym {

// Which file each build-id stands for. Anybody can write a file with the
// build-id of another one, so who may have made them decides between two that
// claim the same (Judge in ksym/base/trust.h). Not thread-safe.
class BuildIdClaims {
 public:
  struct Claimed {
    // The one that was added last, where the word of several counts as much.
    SymbolFileList::iterator file;
    // Files of users claim it who need not believe each other.
    bool is_disputed = false;
  };

  // The file has been loaded; its build_id, which is not empty, and the element
  // of the list must outlive this.
  void Add(SymbolFileList::iterator file);
  // Null: no file claims it. Valid until the next Add().
  const Claimed* Find(std::string_view build_id) const;

 private:
  std::unordered_map<std::string_view, Claimed, TextHash> claims_;
};

}  // namespace ksym
