// SPDX-License-Identifier: Apache-2.0
// Puts names into a log with symbolizer markup, from standard input:
//
//   example_log_markup | example_filter_log [DIRECTORY...]
//
// A file is DIRECTORY/.build-id/ab/cdef.debug; without directories, in
// /usr/lib/debug.

#include <ksym/ksym.h>
#include <stdio.h>

static void write_to(void* context, const char* bytes, size_t size) {
  (void)context;
  fwrite(bytes, 1, size, stdout);
}

static void report(void* context, const char* bytes, size_t size) {
  (void)context;
  fwrite(bytes, 1, size, stderr);
}

int main(int argc, char** argv) {
  const struct ksym_filter_options options = {
      .size = sizeof(options),
      .write_log = write_to,
      .write_report = report,
      .debug_directories = (const char* const*)argv + 1,
      .debug_directory_count = (size_t)(argc - 1),
  };
  ksym_filter* filter = NULL;
  if (ksym_filter_open(&options, &filter) != KSYM_OK) {
    fprintf(stderr, "%s\n", ksym_last_error());
    return 1;
  }
  char line[4096];
  ksym_status status = KSYM_OK;
  while (status == KSYM_OK) {
    const size_t size = fread(line, 1, sizeof(line), stdin);
    if (size == 0) break;
    status = ksym_filter_push(filter, line, size);
  }
  if (status == KSYM_OK) status = ksym_filter_finish(filter);
  if (status != KSYM_OK) fprintf(stderr, "%s\n", ksym_last_error());
  ksym_filter_close(filter);
  return status == KSYM_OK ? 0 : 1;
}
