// SPDX-License-Identifier: Apache-2.0
// Names addresses of a file, a process or the kernel:
//
//   example_symbolize file /bin/true 0x2a10
//   example_symbolize pid 1234 0x7f1c8e0261a0
//   example_symbolize kernel - 0xffffffff81000010

#include <inttypes.h>
#include <ksym/ksym.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ksym_status open_source(const char* kind, const char* what,
                               ksym_source** source) {
  const struct ksym_options options = {.size = sizeof(options),
                                       .flags = KSYM_INLINES};
  if (strcmp(kind, "file") == 0) return ksym_open_file(what, &options, source);
  if (strcmp(kind, "kernel") == 0) return ksym_open_kernel(&options, source);
  return ksym_open_process((uint32_t)strtoul(what, NULL, 10), &options, source);
}

static void print_answer(ksym_source* source, uint64_t address) {
  struct ksym_symbol symbol = {.size = sizeof(symbol)};
  if (ksym_resolve(source, address, 0, &symbol) != KSYM_OK) {
    fprintf(stderr, "%s\n", ksym_last_error());
    return;
  }
  printf("0x%" PRIx64, address);
  if (symbol.frame_count == 0) printf(" ?? (%s)", symbol.reason);
  for (size_t i = 0; i < symbol.frame_count; ++i) {
    const struct ksym_frame* frame = ksym_frame_at(source, i);
    const int is_function = i + 1 == symbol.frame_count;
    printf(" %s", frame->function);
    if (is_function) printf("+0x%" PRIx64, symbol.offset);
    if (frame->line != 0) printf(" %s:%" PRIu32, frame->file, frame->line);
    if (!is_function) printf(" inlined into");
  }
  printf(" in %s\n", symbol.module);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s file|pid|kernel WHAT ADDRESS...\n", argv[0]);
    return 2;
  }
  ksym_source* source = NULL;
  if (open_source(argv[1], argv[2], &source) != KSYM_OK) {
    fprintf(stderr, "%s: %s\n", argv[0], ksym_last_error());
    return 1;
  }
  for (int i = 3; i < argc; ++i) {
    print_answer(source, strtoull(argv[i], NULL, 16));
  }
  ksym_close(source);
  return 0;
}
