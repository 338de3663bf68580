// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/keyed_hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

#include <cstdint>
#include <cstring>

namespace ksym {

HashKey MakeHashKey() {
  HashKey key;
  if (::getrandom(&key, sizeof(key), GRND_NONBLOCK) == sizeof(key)) return key;
  const auto* given = reinterpret_cast<const void*>(::getauxval(AT_RANDOM));
  if (given == nullptr) return {};
  // Other secrets of the process are made of these bytes, so they are not the
  // key themselves.
  uint64_t words[2];
  static_assert(sizeof(words) == sizeof(key));
  std::memcpy(words, given, sizeof(words));
  SipHash<2, 4> first({words[0], words[1]});
  SipHash<2, 4> second({words[0], words[1]});
  return {.k0 = first.Add(1).Finish(), .k1 = second.Add(2).Finish()};
}

}  // namespace ksym
