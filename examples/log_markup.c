// SPDX-License-Identifier: Apache-2.0
// Logs its own backtrace as symbolizer markup, without looking any name up.
// Names are put in later, here or on another machine:
//
//   example_log_markup | ksym-symbolize --filter-markup
//
// finds files by build-id in /usr/lib/debug (--debug-file-directory for other
// places); example_filter_log does the same with the library.

#include <execinfo.h>
#include <ksym/ksym.h>
#include <stdio.h>
#include <unistd.h>

static void write_to_stdout(void* context, const char* bytes, size_t size) {
  (void)context;
  fwrite(bytes, 1, size, stdout);
}

__attribute__((noinline)) void log_backtrace(const char* why) {
  void* addresses[64];
  const int count = backtrace(addresses, 64);
  printf("something is odd: %s\n", why);
  // Each is a return address, for a frame is where its callee returns to.
  for (int i = 0; i < count; ++i) {
    char element[KSYM_MARKUP_FRAME_BYTES];
    ksym_markup_frame(element, sizeof(element), (uint64_t)i,
                      (uint64_t)(uintptr_t)addresses[i], KSYM_RETURN_ADDRESS);
    printf("    %s\n", element);
  }
}

__attribute__((noinline)) void handle_request(void) {
  log_backtrace("a request without an end");
  // Keeps the call above from becoming a jump, which leaves no frame.
  fflush(stdout);
}

int main(void) {
  // Once, when everything is loaded: which files are where.
  if (ksym_markup_process((uint32_t)getpid(), write_to_stdout, NULL, NULL) !=
      KSYM_OK) {
    fprintf(stderr, "%s\n", ksym_last_error());
    return 1;
  }
  handle_request();
  return 0;
}
