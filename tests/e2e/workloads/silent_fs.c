// SPDX-License-Identifier: Apache-2.0
// A file system (FUSE) with one file, "program", whose bytes are those of
// another file. It stops answering at SIGUSR1: requests are taken and never
// answered, so who asks waits and cannot be killed until this program ends,
// which it does 25 s later.
//
//   silent_fs DIRECTORY FILE USER
//
// USER: -1: everybody may use it; else nobody but that user, who has a group of
// the same number.

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kSilentSeconds = 25 };
enum { kRoot = 1, kProgram = 2, kMostBytes = 1 << 17, kRequestBytes = 1 << 18 };

static volatile sig_atomic_t silent;
static int device, program;
static struct stat status;

static void OnSignal(int number) {
  (void)number;
  silent = 1;
  alarm(kSilentSeconds);
}

static void Reply(const struct fuse_in_header* request, int error,
                  const void* data, size_t bytes) {
  if (silent) return;
  struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + bytes),
                                 .error = -error,
                                 .unique = request->unique};
  struct iovec parts[] = {{&head, sizeof(head)}, {(void*)data, bytes}};
  // The caller may have been interrupted.
  if (writev(device, parts, 2) < 0 && errno != ENOENT) perror("reply");
}

static struct fuse_attr Attributes(uint64_t node) {
  struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096};
  attr.mode = node == kRoot ? S_IFDIR | 0555 : S_IFREG | 0555;
  attr.size = node == kRoot ? 0 : (uint64_t)status.st_size;
  attr.mtime = (uint64_t)status.st_mtim.tv_sec;
  return attr;
}

static void ReplyToLookup(const struct fuse_in_header* request,
                          const char* name) {
  if (strcmp(name, "program") != 0) return Reply(request, ENOENT, NULL, 0);
  // Names stay valid, what is known of the file never is: each stat asks.
  struct fuse_entry_out entry = {.nodeid = kProgram, .entry_valid = 3600};
  entry.attr = Attributes(kProgram);
  Reply(request, 0, &entry, sizeof(entry));
}

static void ReplyToRead(const struct fuse_in_header* request,
                        const struct fuse_read_in* range) {
  static char bytes[kMostBytes];
  const size_t wanted = range->size < kMostBytes ? range->size : kMostBytes;
  const ssize_t size = pread(program, bytes, wanted, (off_t)range->offset);
  Reply(request, size < 0 ? errno : 0, bytes, size < 0 ? 0 : (size_t)size);
}

static void Answer(const struct fuse_in_header* request, const void* body) {
  switch (request->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
                                         .minor = FUSE_KERNEL_MINOR_VERSION,
                                         .max_readahead = kMostBytes,
                                         .max_write = kMostBytes};
      return Reply(request, 0, &init, sizeof(init));
    }
    case FUSE_GETATTR: {
      const struct fuse_attr_out out = {.attr = Attributes(request->nodeid)};
      return Reply(request, 0, &out, sizeof(out));
    }
    case FUSE_LOOKUP:
      return ReplyToLookup(request, body);
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
      const struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
      return Reply(request, 0, &out, sizeof(out));
    }
    case FUSE_READ:
      return ReplyToRead(request, body);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;  // to which there are no answers
    default:
      return Reply(request, ENOSYS, NULL, 0);
  }
}

static void Fail(const char* what) {
  perror(what);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int user = atoi(argv[3]);
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) Fail("/dev/fuse");
  program = open(argv[2], O_RDONLY | O_CLOEXEC);
  if (program < 0 || fstat(program, &status) != 0) Fail(argv[2]);
  char options[128];
  snprintf(options, sizeof(options),
           "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s", device,
           user < 0 ? 0 : user, user < 0 ? 0 : user,
           user < 0 ? ",allow_other" : "");
  if (mount("silent", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
    Fail(argv[1]);
  }
  signal(SIGUSR1, OnSignal);
  puts("ready");
  fflush(stdout);
  static char request[kRequestBytes];
  for (;;) {
    const ssize_t size = read(device, request, sizeof(request));
    if (size < 0 && errno == ENODEV) return 0;  // unmounted
    if (size < (ssize_t)sizeof(struct fuse_in_header)) continue;
    Answer((const struct fuse_in_header*)request,
           request + sizeof(struct fuse_in_header));
  }
}
