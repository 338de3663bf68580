// SPDX-License-Identifier: Apache-2.0
#include "ksym/file_reasons.h"

#include <cerrno>

namespace ksym {
namespace {

Unresolved ReasonOfErrno(int sys_errno) {
  switch (sys_errno) {
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return Unresolved::kTooLarge;
    case ETIMEDOUT:
      return Unresolved::kNotInTime;
    default:
      return Unresolved::kGone;
  }
}

}  // namespace

Unresolved ReasonOfOpening(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kPermission:
      return Unresolved::kNoPermission;
    case ErrorCode::kInvalid:
      return Unresolved::kFileChanged;
    case ErrorCode::kUnsupported:
      return Unresolved::kMalformed;
    default:
      return ReasonOfErrno(error.sys_errno());
  }
}

Unresolved ReasonOfLoading(const Error& error) {
  return error.code() == ErrorCode::kLimit ? Unresolved::kTooLarge
                                           : Unresolved::kMalformed;
}

}  // namespace ksym
