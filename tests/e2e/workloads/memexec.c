// SPDX-License-Identifier: Apache-2.0
// memexec PROGRAM [ARG...]: runs a copy of it that is in memory only.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "workload.h"

extern char** environ;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int file = open(argv[1], O_RDONLY | O_CLOEXEC);
  const int copy = memfd_create("in memory", MFD_CLOEXEC);
  struct stat status;
  if (file < 0 || copy < 0 || fstat(file, &status) != 0) return 1;
  for (off_t at = 0; at < status.st_size;) {
    if (sendfile(copy, file, &at, (size_t)(status.st_size - at)) <= 0) return 1;
  }
  fexecve(copy, argv + 1, environ);
  return 1;
}
