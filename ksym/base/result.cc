// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/result.h"

#include <cerrno>
#include <system_error>

namespace ksym {
namespace {

ErrorCode CodeOfErrno(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EPERM:
    case EACCES:
      return ErrorCode::kPermission;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

Error Error::FromErrno(int sys_errno, std::string_view context) {
  std::string message(context);
  message += ": ";
  message += std::generic_category().message(sys_errno);
  Error error(CodeOfErrno(sys_errno), std::move(message));
  error.sys_errno_ = sys_errno;
  return error;
}

Error Error::WithContext(std::string_view context) && {
  message_.insert(0, ": ");
  message_.insert(0, context);
  return std::move(*this);
}

}  // namespace ksym
