// SPDX-License-Identifier: Apache-2.0
#include "ksym/c_api/call.h"

#include <algorithm>
#include <array>

namespace ksym::c_api {
namespace {

constexpr size_t kMaxMessageBytes = 1024;
thread_local std::array<char, kMaxMessageBytes> last_error = {};

ksym_status StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return KSYM_NOT_FOUND;
    case ErrorCode::kPermission:
      return KSYM_PERMISSION;
    case ErrorCode::kIo:
      return KSYM_IO;
    case ErrorCode::kCorrupt:
      return KSYM_CORRUPT;
    case ErrorCode::kUnsupported:
      return KSYM_UNSUPPORTED;
    case ErrorCode::kInvalid:
      return KSYM_INVALID;
    case ErrorCode::kLimit:
      return KSYM_LIMIT;
  }
  return KSYM_INTERNAL;
}

}  // namespace

ksym_status Failed(ksym_status status, std::string_view message) noexcept {
  const size_t size = std::min(message.size(), last_error.size() - 1);
  std::copy_n(message.begin(), size, last_error.begin());
  last_error[size] = '\0';
  return status;
}

ksym_status Failed(const Error& error) noexcept {
  return Failed(StatusOf(error.code()), error.message());
}

}  // namespace ksym::c_api

extern "C" {

const char* ksym_version(void) { return KSYM_VERSION; }

const char* ksym_status_name(int status) {
  switch (status) {
    case KSYM_OK:
      return "ok";
    case KSYM_NOT_FOUND:
      return "not found";
    case KSYM_PERMISSION:
      return "no permission";
    case KSYM_IO:
      return "input or output failed";
    case KSYM_CORRUPT:
      return "corrupt";
    case KSYM_UNSUPPORTED:
      return "unsupported";
    case KSYM_INVALID:
      return "invalid argument";
    case KSYM_LIMIT:
      return "limit reached";
    case KSYM_NO_MEMORY:
      return "out of memory";
    case KSYM_INTERNAL:
      return "internal error";
    default:
      return "unknown status";
  }
}

const char* ksym_last_error(void) { return ksym::c_api::last_error.data(); }

}  // extern "C"
