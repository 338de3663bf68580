// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/container_key.h"

namespace profd {

NameResult NameResultOf(const ksym::Error& error) {
  switch (error.code()) {
    case ksym::ErrorCode::kNotFound:
      return NameResult::kNotFound;
    case ksym::ErrorCode::kPermission:
      return NameResult::kNotTrusted;
    case ksym::ErrorCode::kLimit:
      return NameResult::kTooLarge;
    default:
      return NameResult::kUnreadable;
  }
}

}  // namespace profd
