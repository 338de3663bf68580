// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace profd {

// The messages between FileChild and its child, over a socket that keeps the
// boundaries of messages (SOCK_SEQPACKET).

// A request for a file that may not answer.
struct FileRequest {
  enum class Kind : uint32_t {
    kHold,      // FileOpener::Hold() of `pid` and `mapping`
    kRead,      // a copy of `held`, if it is as it was then
    kOpenPath,  // a copy of FileOpener::OpenPath() of the mapping's path
    kGiveUp,    // no answer to `id` is waited for
  };
  uint64_t id = 0;
  Kind kind = Kind::kHold;
  uint32_t pid = 0;
  ksym::Mapping mapping;
  ksym::Links links = ksym::Links::kFollowInside;
  ksym::OpenedFile held = {};
  uint64_t max_bytes = 0;  // of a copy
};

struct FileAnswer {
  uint64_t id = 0;
  // The one who had been asked is gone; comes after the answer if there is one.
  bool has_ended = false;
  ksym::Result<ksym::OpenedFile> file = ksym::OpenedFile();
};

// kLimit: the path is too long. kIo: the socket takes no more, or nobody is
// there. Never waits.
ksym::Status SendRequest(int socket, const FileRequest& request);
ksym::Status SendAnswer(int socket, const FileAnswer& answer);
// Nothing: what came is no such message. kNotFound: the other one is gone;
// kIo with EAGAIN: nothing is there. Never waits.
ksym::Result<std::optional<FileRequest>> ReceiveRequest(int socket);
ksym::Result<std::optional<FileAnswer>> ReceiveAnswer(int socket);

}  // namespace profd
