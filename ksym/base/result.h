// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace ksym {

// What a caller can do about a failure, not where it came from.
enum class ErrorCode {
  kNotFound,     // the thing does not exist (any more): go on without it
  kPermission,   // a privilege is missing: tell the user which
  kIo,           // the system refused or failed: perhaps try again
  kCorrupt,      // the bytes are not what they claim to be: do not use them
  kUnsupported,  // a valid thing that this program or kernel cannot handle
  kInvalid,      // the caller's argument is out of range
  kLimit,        // a bound of ours was reached: raise it or shrink the input
};

// A failure with enough context for one line of text. Cheap to move.
class Error {
 public:
  Error(ErrorCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  // The failure of a system call: "context: strerror(sys_errno)". The code is
  // derived from sys_errno (ENOENT, ESRCH, ENODEV, ENXIO -> kNotFound;
  // EPERM, EACCES -> kPermission; ENOSYS, EOPNOTSUPP -> kUnsupported; else
  // kIo).
  static Error FromErrno(int sys_errno, std::string_view context);

  ErrorCode code() const { return code_; }
  // 0 when no system call was involved.
  int sys_errno() const { return sys_errno_; }
  const std::string& message() const { return message_; }

  // Puts "context: " before the message; each level of callers adds one.
  Error WithContext(std::string_view context) &&;

 private:
  ErrorCode code_;
  int sys_errno_ = 0;
  std::string message_;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

// Shorthands for `return`.
inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error(code, std::move(message)));
}
inline std::unexpected<Error> Fail(Error error) {
  return std::unexpected<Error>(std::move(error));
}
inline std::unexpected<Error> FailErrno(int sys_errno,
                                        std::string_view context) {
  return std::unexpected<Error>(Error::FromErrno(sys_errno, context));
}

}  // namespace ksym
