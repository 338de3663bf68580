// SPDX-License-Identifier: Apache-2.0
// The C interface as a C program has it: bad arguments, markup, filter.

#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "ksym/ksym.h"

int failed_checks;

// Bytes that callbacks were given, with a 0.
struct collected {
  char text[16384];
  size_t size;
};

static void collect(void* context, const char* bytes, size_t size) {
  struct collected* to = context;
  if (size >= sizeof(to->text) - to->size) return;
  memcpy(to->text + to->size, bytes, size);
  to->size += size;
  to->text[to->size] = '\0';
}

// Arguments that make no sense are errors with a text, and store null.
static void test_bad_open(void) {
  ksym_source* source = (ksym_source*)1;
  CHECK(ksym_open_file("/does/not/exist", NULL, &source) == KSYM_NOT_FOUND);
  CHECK(source == NULL);
  CHECK(strstr(ksym_last_error(), "/does/not/exist") != NULL);
  CHECK(ksym_open_file(NULL, NULL, &source) == KSYM_INVALID);
  CHECK(ksym_open_file("/bin/true", NULL, NULL) == KSYM_INVALID);
  CHECK(ksym_open_file("/etc/passwd", NULL, &source) == KSYM_UNSUPPORTED);
  CHECK(ksym_open_file("/dev/null", NULL, &source) == KSYM_INVALID);
  CHECK(ksym_open_gsym("/bin/true", NULL, &source) != KSYM_OK);
  CHECK(ksym_open_process(0x7fffffff, NULL, &source) == KSYM_NOT_FOUND);
  struct ksym_options options = {.size = 0};
  CHECK(ksym_open_file("/bin/true", &options, &source) == KSYM_INVALID);
  options.size = (size_t)-1;
  CHECK(ksym_open_file("/bin/true", &options, &source) == KSYM_INVALID);
  options.size = sizeof(options);
  options.flags = 1u << 31;
  CHECK(ksym_open_file("/bin/true", &options, &source) == KSYM_UNSUPPORTED);
  CHECK(source == NULL);
  ksym_close(NULL);
}

// A struct of a newer program is taken if what is new in it is 0.
static void test_newer_struct(void) {
  struct {
    struct ksym_options known;
    uint64_t added;
  } newer = {.known = {.size = sizeof(newer)}};
  ksym_source* source = NULL;
  CHECK(ksym_open_file("/proc/self/exe", &newer.known, &source) == KSYM_OK);
  ksym_close(source);
  newer.added = 1;
  CHECK(ksym_open_file("/proc/self/exe", &newer.known, &source) ==
        KSYM_UNSUPPORTED);
  CHECK(source == NULL);
}

// No more of the answer is written than the caller has room for.
static void test_symbol_size(void) {
  ksym_source* source = NULL;
  CHECK(ksym_open_file("/proc/self/exe", NULL, &source) == KSYM_OK);
  struct {
    struct ksym_symbol known;
    uint64_t behind;
  } room = {.known = {.size = sizeof(room)}, .behind = 42};
  CHECK(ksym_resolve(source, 0, 0, &room.known) == KSYM_OK);
  CHECK(room.known.size == sizeof(room) && room.behind == 42);
  room.known.size = 0;
  CHECK(ksym_resolve(source, 0, 0, &room.known) == KSYM_INVALID);
  CHECK(ksym_resolve(source, 0, 0, NULL) == KSYM_INVALID);
  CHECK(ksym_resolve(NULL, 0, 0, &room.known) == KSYM_INVALID);
  room.known.size = sizeof(room.known);
  CHECK(ksym_resolve(source, 0, 2, &room.known) == KSYM_UNSUPPORTED);
  CHECK(ksym_frame_at(NULL, 0) == NULL);
  ksym_close(source);
}

// Builders write what snprintf would: never more than there is room for, and
// how much there should be.
static void test_markup_sizes(void) {
  char text[128] = "unchanged";
  CHECK(ksym_markup_reset(NULL, 0) == strlen("{{{reset}}}"));
  CHECK(ksym_markup_reset(text, 4) == strlen("{{{reset}}}"));
  CHECK_TEXT(text, "{{{");
  CHECK(ksym_markup_reset(NULL, 4) == 0);
  CHECK(ksym_markup_frame(text, KSYM_MARKUP_FRAME_BYTES, UINT64_MAX, UINT64_MAX,
                          KSYM_RETURN_ADDRESS) < KSYM_MARKUP_FRAME_BYTES);
  CHECK_TEXT(text, "{{{bt:18446744073709551615:0xffffffffffffffff:ra}}}");
}

// Each builder makes its element, or nothing of arguments without sense.
static void test_markup_elements(void) {
  char text[128];
  ksym_markup_module(text, sizeof(text), 7, "a:b}", "83238a");
  CHECK_TEXT(text, "{{{module:7:a_b_:elf:83238a}}}");
  CHECK(ksym_markup_module(text, sizeof(text), 7, "a", "no hex") == 0);
  CHECK(ksym_markup_module(text, sizeof(text), 7, NULL, "83238a") == 0);
  struct ksym_mmap mmap = {.size = sizeof(mmap),
                           .address = 0x7000,
                           .length = 0x1000,
                           .module_id = 7,
                           .mode = "rx",
                           .module_address = 0x2000};
  ksym_markup_mmap(text, sizeof(text), &mmap);
  CHECK_TEXT(text, "{{{mmap:0x7000:0x1000:load:7:rx:0x2000}}}");
  mmap.mode = "xr";
  CHECK(ksym_markup_mmap(text, sizeof(text), &mmap) == 0);
  mmap.mode = NULL;
  CHECK(ksym_markup_mmap(text, sizeof(text), &mmap) == 0);
  CHECK(ksym_markup_mmap(text, sizeof(text), NULL) == 0);
  ksym_markup_code(text, sizeof(text), 0x7010, 0);
  CHECK_TEXT(text, "{{{pc:0x7010:pc}}}");
  CHECK(ksym_markup_code(text, sizeof(text), 0x7010, 8) == 0);
  ksym_markup_data(text, sizeof(text), 0x7010);
  CHECK_TEXT(text, "{{{data:0x7010}}}");
  ksym_markup_symbol(text, sizeof(text), "_Z1fv");
  CHECK_TEXT(text, "{{{symbol:_Z1fv}}}");
  CHECK(ksym_markup_symbol(text, sizeof(text), NULL) == 0);
}

// A process describes itself: a filter that has its file by build-id names its
// functions.
static void test_process_and_filter(void) {
  static struct collected log;
  size_t skipped = 0;
  CHECK(ksym_markup_process((uint32_t)getpid(), collect, &log, &skipped) ==
        KSYM_OK);
  CHECK(strncmp(log.text, "{{{reset}}}\n{{{module:0:", 24) == 0);
  CHECK(strstr(log.text, "{{{mmap:0x") != NULL);
  CHECK(ksym_markup_process((uint32_t)getpid(), NULL, NULL, NULL) ==
        KSYM_INVALID);
  char element[KSYM_MARKUP_FRAME_BYTES];
  ksym_markup_code(element, sizeof(element), (uint64_t)(uintptr_t)test_answers,
                   0);
  collect(&log, "at ", 3);
  collect(&log, element, strlen(element));
  collect(&log, "\n", 1);

  // The directory that debug files are in, with this program in it.
  ksym_source* own = NULL;
  CHECK(ksym_open_file("/proc/self/exe", NULL, &own) == KSYM_OK);
  struct ksym_symbol symbol = {.size = sizeof(symbol)};
  CHECK(ksym_resolve(own, 0, 0, &symbol) == KSYM_OK);
  CHECK(strlen(symbol.build_id) == 40);
  char directory[] = "/tmp/ksym-c-api-XXXXXX";
  CHECK(mkdtemp(directory) != NULL);
  char command[512];
  snprintf(command, sizeof(command),
           "mkdir -p %s/.build-id/%.2s && cp /proc/%d/exe %s/.build-id/%.2s/"
           "%s.debug",
           directory, symbol.build_id, (int)getpid(), directory,
           symbol.build_id, symbol.build_id + 2);
  CHECK(system(command) == 0);
  ksym_close(own);

  static struct collected named;
  const char* directories[] = {directory};
  struct ksym_filter_options options = {.size = sizeof(options),
                                        .write_log = collect,
                                        .context = &named,
                                        .debug_directories = directories,
                                        .debug_directory_count = 1};
  ksym_filter* filter = NULL;
  CHECK(ksym_filter_open(&options, &filter) == KSYM_OK);
  // Cut anywhere.
  for (size_t i = 0; i < log.size; i += 7) {
    const size_t rest = log.size - i;
    CHECK(ksym_filter_push(filter, log.text + i, rest < 7 ? rest : 7) ==
          KSYM_OK);
  }
  CHECK(ksym_filter_finish(filter) == KSYM_OK);
  CHECK(strstr(named.text, "at test_answers") != NULL);
  CHECK(ksym_filter_push(filter, "x\n", 2) == KSYM_INVALID);
  ksym_filter_close(filter);
  snprintf(command, sizeof(command), "rm -r %s", directory);
  CHECK(system(command) == 0);
}

// What is wrong with a log is reported and is no failure; bad options are.
static void test_filter_reports(void) {
  static struct collected out;
  struct ksym_filter_options options = {.size = sizeof(options),
                                        .write_log = collect,
                                        .write_report = collect,
                                        .context = &out};
  ksym_filter* filter = NULL;
  CHECK(ksym_filter_open(&options, &filter) == KSYM_OK);
  CHECK(ksym_filter_push(filter, "at {{{pc:2}}}\n", 14) == KSYM_OK);
  CHECK(strstr(out.text, "expected address; found '2'") != NULL);
  CHECK(ksym_filter_push(filter, NULL, 1) == KSYM_INVALID);
  CHECK(ksym_filter_push(filter, NULL, 0) == KSYM_OK);
  ksym_filter_close(filter);
  options.write_log = NULL;
  CHECK(ksym_filter_open(&options, &filter) == KSYM_INVALID);
  CHECK(filter == NULL);
  options.write_log = collect;
  options.debug_directory_count = 1;
  CHECK(ksym_filter_open(&options, &filter) == KSYM_INVALID);
  options.debug_directory_count = 0;
  options.max_line_bytes = 1;
  CHECK(ksym_filter_open(&options, &filter) == KSYM_INVALID);
  CHECK(ksym_filter_open(NULL, &filter) == KSYM_INVALID);
  CHECK(ksym_filter_open(&options, NULL) == KSYM_INVALID);
  CHECK(ksym_filter_finish(NULL) == KSYM_INVALID);
  ksym_filter_close(NULL);
}

static void test_texts(void) {
  CHECK(ksym_version()[0] >= '0' && ksym_version()[0] <= '9');
  CHECK_TEXT(ksym_status_name(KSYM_OK), "ok");
  CHECK_TEXT(ksym_status_name(KSYM_INTERNAL), "internal error");
  CHECK_TEXT(ksym_status_name(99), "unknown status");
}

int main(int argc, char** argv) {
  (void)argc;
  test_texts();
  test_bad_open();
  test_newer_struct();
  test_symbol_size();
  test_markup_sizes();
  test_markup_elements();
  test_process_and_filter();
  test_filter_reports();
  test_answers(argv[0]);
  printf("%d checks failed\n", failed_checks);
  return failed_checks == 0 ? 0 : 1;
}
