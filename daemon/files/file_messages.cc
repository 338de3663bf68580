// SPDX-License-Identifier: Apache-2.0
#include "daemon/files/file_messages.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::FailErrno;
using ksym::Result;
using ksym::Status;
using ksym::UniqueFd;

// Texts behind the heads: a path, or an error with one in it.
constexpr size_t kMaxTextBytes = 2 * ksym::kMaxOnePathBytes;

struct RequestHead {
  uint64_t id;
  uint32_t kind;
  uint32_t pid;
  uint64_t refuses_links;
  uint64_t start, end, file_offset, inode;
  uint32_t device_major, device_minor;
  uint64_t size;
  int64_t mtime_ns;
  uint64_t max_bytes;
};

struct AnswerHead {
  uint64_t id;
  uint32_t has_ended;
  int32_t code;  // of ErrorCode; -1: none
  int32_t sys_errno;
  uint32_t is_held;
  uint64_t size;
  int64_t mtime_ns;
  uint64_t inode;
  uint64_t device;
  uint32_t user, group, mode;
  uint32_t is_served;
  uint32_t is_only_one;
  uint32_t build_id_bytes;  // of the text; the rest is a message
};

template <typename Head>
struct Message {
  Head head = {};
  std::string text;
  UniqueFd fd;
};

template <typename Head>
Status Send(int socket, const Head& head, std::string_view text, int fd) {
  static_assert(std::is_trivially_copyable_v<Head>);
  Head copy = head;
  std::array<iovec, 2> parts = {
      {{&copy, sizeof(copy)}, {const_cast<char*>(text.data()), text.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  // A message is sent whole or not at all, as the socket keeps its boundaries.
  if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return FailErrno(errno, "child for files");
  }
  return {};
}

UniqueFd TakeFd(msghdr& message) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET ||
      header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return {};
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return UniqueFd(fd);
}

// Nothing: it is shorter than its head, or was cut off.
template <typename Head>
Result<std::optional<Message<Head>>> Receive(int socket) {
  Message<Head> received;
  std::array<char, kMaxTextBytes> text;
  std::array<iovec, 2> parts = {
      {{&received.head, sizeof(Head)}, {text.data(), text.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size =
      ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return FailErrno(errno, "child for files");
  if (size == 0) return Fail(ErrorCode::kNotFound, "child for files: gone");
  // Before anything is refused: the descriptor is ours by now, and must be
  // closed.
  received.fd = TakeFd(message);
  const auto bytes = static_cast<size_t>(size);
  if (bytes < sizeof(Head) || (message.msg_flags & MSG_TRUNC) != 0) {
    return std::nullopt;
  }
  received.text.assign(text.data(), bytes - sizeof(Head));
  return received;
}

}  // namespace

Status SendRequest(int socket, const FileRequest& request) {
  const ksym::Mapping& mapping = request.mapping;
  const std::string& path = mapping.path;
  if (path.size() > kMaxTextBytes) {
    return Fail(ErrorCode::kLimit,
                "a path of " + std::to_string(path.size()) + " bytes");
  }
  const uint64_t refuses_links = request.links == ksym::Links::kRefuse ? 1 : 0;
  const RequestHead head = {.id = request.id,
                            .kind = static_cast<uint32_t>(request.kind),
                            .pid = request.pid,
                            .refuses_links = refuses_links,
                            .start = mapping.start.value,
                            .end = mapping.end.value,
                            .file_offset = mapping.file_offset.value,
                            .inode = mapping.inode,
                            .device_major = mapping.device_major,
                            .device_minor = mapping.device_minor,
                            .size = request.held.size,
                            .mtime_ns = request.held.mtime_ns,
                            .max_bytes = request.max_bytes};
  return Send(socket, head, path, request.held.fd.get());
}

Status SendAnswer(int socket, const FileAnswer& answer) {
  AnswerHead head = {};
  head.id = answer.id;
  head.has_ended = answer.has_ended ? 1 : 0;
  head.code = -1;
  if (!answer.file) {
    const ksym::Error& error = answer.file.error();
    head.code = static_cast<int32_t>(error.code());
    head.sys_errno = error.sys_errno();
    return Send(socket, head,
                std::string_view(error.message()).substr(0, kMaxTextBytes), -1);
  }
  const ksym::OpenedFile& file = *answer.file;
  const std::string_view build_id =
      std::string_view(file.mapped_build_id).substr(0, kMaxTextBytes);
  head.inode = file.inode;
  head.device = file.owner.device;
  head.user = file.owner.user;
  head.group = file.owner.group;
  head.mode = file.owner.mode;
  head.is_served = file.owner.is_served ? 1 : 0;
  head.is_only_one = file.is_only_one ? 1 : 0;
  head.size = file.size;
  head.mtime_ns = file.mtime_ns;
  head.is_held = file.is_held ? 1 : 0;
  head.build_id_bytes = static_cast<uint32_t>(build_id.size());
  return Send(socket, head, build_id, file.fd.get());
}

Result<std::optional<FileRequest>> ReceiveRequest(int socket) {
  auto received = Receive<RequestHead>(socket);
  if (!received) return Fail(std::move(received.error()));
  std::optional<Message<RequestHead>>& message = *received;
  if (!message) return std::nullopt;
  const RequestHead& head = message->head;
  if (head.kind > static_cast<uint32_t>(FileRequest::Kind::kGiveUp)) {
    return std::nullopt;
  }
  FileRequest request;
  request.id = head.id;
  request.kind = static_cast<FileRequest::Kind>(head.kind);
  request.pid = head.pid;
  request.links = head.refuses_links != 0 ? ksym::Links::kRefuse
                                          : ksym::Links::kFollowInside;
  request.mapping.start = {head.start};
  request.mapping.end = {head.end};
  request.mapping.file_offset = {head.file_offset};
  request.mapping.inode = head.inode;
  request.mapping.device_major = head.device_major;
  request.mapping.device_minor = head.device_minor;
  request.mapping.path = message->text;
  request.held.fd = std::move(message->fd);
  request.held.is_held = true;
  request.held.size = head.size;
  request.held.mtime_ns = head.mtime_ns;
  request.max_bytes = head.max_bytes;
  return request;
}

Result<std::optional<FileAnswer>> ReceiveAnswer(int socket) {
  auto received = Receive<AnswerHead>(socket);
  if (!received) return Fail(std::move(received.error()));
  std::optional<Message<AnswerHead>>& message = *received;
  if (!message) return std::nullopt;
  const AnswerHead& head = message->head;
  const std::string& text = message->text;
  FileAnswer answer;
  answer.id = head.id;
  answer.has_ended = head.has_ended != 0;
  if (answer.has_ended) return answer;
  if (head.code > static_cast<int32_t>(ErrorCode::kLimit)) return std::nullopt;
  if (head.sys_errno != 0) {
    answer.file = FailErrno(head.sys_errno, text);
  } else if (head.code >= 0) {
    answer.file = Fail(static_cast<ErrorCode>(head.code), text);
  } else {
    ksym::OpenedFile file;
    file.fd = std::move(message->fd);
    if (!file.fd.valid() || head.build_id_bytes > text.size()) {
      return std::nullopt;
    }
    file.is_held = head.is_held != 0;
    file.inode = head.inode;
    file.owner = {.device = head.device,
                  .user = head.user,
                  .group = head.group,
                  .mode = head.mode,
                  .is_served = head.is_served != 0};
    file.is_only_one = head.is_only_one != 0;
    file.size = head.size;
    file.mtime_ns = head.mtime_ns;
    file.mapped_build_id = text.substr(0, head.build_id_bytes);
    answer.file = std::move(file);
  }
  return answer;
}

}  // namespace profd
