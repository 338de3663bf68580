// SPDX-License-Identifier: Apache-2.0
// The C interface of libksym; see libksym(3) and examples/.
//
// What is declared here is stable: functions and fields are only added. What a
// program hands in has the size that the struct had when it was compiled, so a
// newer library knows what is there; the library's own objects are opaque.
//
// Errors: a function that can fail returns a ksym_status, and ksym_last_error()
// has the sentence. No C++ exception gets out. An address without a name is no
// error.
// Threads: an object is used by one thread at a time, different objects by any
// number of threads. The library starts none, and prints nothing. A call may
// take 2 MiB of stack, as names nest.
#ifndef KSYM_KSYM_H_
#define KSYM_KSYM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Names as C has them. NOLINTBEGIN(readability-identifier-naming)

// What a caller can do about a failure.
enum ksym_status {
  KSYM_OK = 0,
  KSYM_NOT_FOUND = 1,    // the file or process does not exist (any more)
  KSYM_PERMISSION = 2,   // a privilege is missing
  KSYM_IO = 3,           // the system refused or failed: perhaps try again
  KSYM_CORRUPT = 4,      // the bytes are not what they claim to be
  KSYM_UNSUPPORTED = 5,  // valid, but not for this library or kernel
  KSYM_INVALID = 6,      // an argument makes no sense
  KSYM_LIMIT = 7,        // a bound of the library was reached
  KSYM_NO_MEMORY = 8,
  KSYM_INTERNAL = 9  // a mistake in the library, or a callback threw
};
typedef enum ksym_status ksym_status;

// "MAJOR.MINOR.PATCH", a static text.
const char* ksym_version(void);
// The status's name, such as "not found", a static text; never null.
const char* ksym_status_name(int status);
// What was wrong in the calling thread's last call that failed: one sentence,
// without newline, naming the object. Never null; valid until the thread's next
// call that fails. At most 1023 bytes.
const char* ksym_last_error(void);

// ---- Names for addresses ---------------------------------------------------

// Something whose addresses can be named.
typedef struct ksym_source ksym_source;

// Names as the files have them.
#define KSYM_NO_DEMANGLE 1u
// Inlined calls, source files and lines as well, where the file or its debug
// file has DWARF, which is converted in memory: of a file as much as each
// address needs and, after some of them, all of it; of a process all of it at
// the first address in each file. All takes some 10 ms per MB of it.
#define KSYM_INLINES 2u

struct ksym_options {
  size_t size;        // sizeof(struct ksym_options)
  uint32_t flags;     // KSYM_NO_DEMANGLE | KSYM_INLINES
  uint32_t reserved;  // 0
  // For ksym_open_kernel: a copy of /proc/kallsyms, a System.map, or what
  // gen_ksym made; null: the running kernel.
  const char* kernel_symbols;
};

// Each stores a new object in *source, which the caller ends with ksym_close,
// or fails and stores null. `options` may be null: no flags. Texts are copied.

// An ELF file by its path; addresses are those that its own headers and
// symbols use. Reads its symbol tables, or its debug file's: some 0.2 us per
// symbol. The file is kept open.
ksym_status ksym_open_file(const char* path, const struct ksym_options* options,
                           ksym_source** source);
// A GSYM file, which is mapped: it must not be truncated meanwhile. Inlined
// calls and lines are always shown.
ksym_status ksym_open_gsym(const char* path, const struct ksym_options* options,
                           ksym_source** source);
// A running process; addresses are those of its memory. Its mappings are read
// now, and again when an address is not mapped; the symbols of a mapped file at
// the first address in it. Other users' processes need CAP_SYS_PTRACE.
ksym_status ksym_open_process(uint32_t pid, const struct ksym_options* options,
                              ksym_source** source);
// The kernel and its modules as they are now. Reads /proc/kallsyms, which takes
// some 50 ms; without CAP_SYSLOG that has no addresses, which is
// KSYM_PERMISSION.
ksym_status ksym_open_kernel(const struct ksym_options* options,
                             ksym_source** source);
// Null is allowed.
void ksym_close(ksym_source* source);

// The address is a return address: the call before it is looked up.
#define KSYM_RETURN_ADDRESS 1u

struct ksym_symbol {
  size_t size;         // sizeof(struct ksym_symbol), set by the caller
  size_t frame_count;  // 0: no name, see reason
  // Texts are never null; what is not known is "". They are valid until the
  // next call with the source.
  const char* module;    // path of the file, "[kernel]", "[ext4]", "[vdso]"
  const char* build_id;  // lower-case hex
  // Why there is no name: "unmapped", "no-symbol", "no-symbols", "anonymous",
  // "no-process", "no-permission", "gone", "file-changed", "malformed", ...;
  // "" when there is one.
  const char* reason;
  uint64_t start;   // address of the function; 0 without a name
  uint64_t offset;  // of the address that was asked for from `start`
};

// A function at an address, or code that was inlined into one.
struct ksym_frame {
  const char* function;   // any bytes but 0: they come from the file
  const char* directory;  // of the source file; "" when not known
  const char* file;
  uint32_t line;  // 0: not known; of callers of inlined code that of the call
};

// Fills *symbol, up to its size. Microseconds, but for the first address in a
// file (see above). Fails for arguments that make no sense only.
ksym_status ksym_resolve(ksym_source* source, uint64_t address, uint32_t flags,
                         struct ksym_symbol* symbol);
// The frames of the last answer, innermost first: inlined calls, then the
// function. Null: there is none of that index. Valid as the texts are.
const struct ksym_frame* ksym_frame_at(const ksym_source* source, size_t index);

// ---- Logs with symbolizer markup -------------------------------------------

// Replaces the elements of a log by names, as `ksym-symbolize --filter-markup`.
typedef struct ksym_filter ksym_filter;

// Takes what comes out: parts of lines, too. The bytes are valid during the
// call only; it must not use the filter.
typedef void (*ksym_write)(void* context, const char* bytes, size_t size);

// Colors, as a terminal takes them.
#define KSYM_COLOR 4u

struct ksym_filter_options {
  size_t size;        // sizeof(struct ksym_filter_options)
  uint32_t flags;     // KSYM_NO_DEMANGLE | KSYM_COLOR
  uint32_t reserved;  // 0
  ksym_write write_log;
  // Lines about what is wrong with the log; null: nobody wants them.
  ksym_write write_report;
  void* context;  // of both
  // Directories with .build-id/ab/cdef.debug below them; none: /usr/lib/debug.
  const char* const* debug_directories;
  size_t debug_directory_count;
  // Directories with .build-id/ab/cdef.gsym below them, or with abcdef.gsym:
  // ready sooner than DWARF.
  const char* const* gsym_directories;
  size_t gsym_directory_count;
  // The log's kernel's; null: the running one's, if it is that one.
  const char* kernel_symbols;
  // A longer line is filtered in parts; 0: 1 MiB.
  size_t max_line_bytes;
};

// Stores a new object in *filter, which the caller ends with ksym_filter_close.
// Texts are copied. Where files have DWARF, frames have lines and inlined
// calls. Memory: two lines, the log's modules and mmaps (bounded), and symbol
// tables up to 1 GiB.
ksym_status ksym_filter_open(const struct ksym_filter_options* options,
                             ksym_filter** filter);
// The next bytes of the log, cut anywhere, or one line with its newline. All
// lines that are whole by now have been written on return, but those that wait
// for more about their module. Nothing in a log is a failure.
ksym_status ksym_filter_push(ksym_filter* filter, const char* bytes,
                             size_t size);
// Ends the log: writes what is left. The filter can only be closed then.
ksym_status ksym_filter_finish(ksym_filter* filter);
// Null is allowed. Writes nothing.
void ksym_filter_close(ksym_filter* filter);

// ---- Markup for programs that log it ---------------------------------------

// Each writes one element and a 0 to `out`, at most `size` bytes, and returns
// how long the element is, as snprintf does: it was cut if that is not less
// than `size`. `out` may be null if `size` is 0. Returns 0 when an argument
// makes no sense or there is no memory. No lookup, no lock, no system call, but
// memory is allocated: not for signal handlers. Context elements (reset,
// module, mmap) belong on lines of their own. In texts, what would end a field
// or is not printable becomes '_' or '?'.
size_t ksym_markup_reset(char* out, size_t size);
size_t ksym_markup_module(char* out, size_t size, uint64_t id, const char* name,
                          const char* build_id);

struct ksym_mmap {
  size_t size;  // sizeof(struct ksym_mmap)
  uint64_t address;
  uint64_t length;          // bytes
  uint64_t module_id;       // as the module element had it
  const char* mode;         // of "rwx" in that order, not empty
  uint64_t module_address;  // of `address`, as the file's headers count
};
size_t ksym_markup_mmap(char* out, size_t size, const struct ksym_mmap* mmap);
// A frame of a backtrace; flags: KSYM_RETURN_ADDRESS, or 0 for a place where
// the program was.
//
// No frame is longer, with its 0: "{{{bt:N:0xADDRESS:ra}}}".
#define KSYM_MARKUP_FRAME_BYTES 64
size_t ksym_markup_frame(char* out, size_t size, uint64_t number,
                         uint64_t address, uint32_t flags);
size_t ksym_markup_code(char* out, size_t size, uint64_t address,
                        uint32_t flags);
size_t ksym_markup_data(char* out, size_t size, uint64_t address);
size_t ksym_markup_symbol(char* out, size_t size, const char* linkage_name);

// Writes the context of a process, usually the caller's own (getpid()): a line
// with reset, and lines with a module and its mmaps for each file that is
// mapped executable and has a build-id. Call it before the first addresses,
// and again when libraries were loaded. Reads /proc/PID/maps and the headers of
// each file: some 20 us a file. `skipped`, if not null: how many mapped files
// have no build-id, or could not be opened.
ksym_status ksym_markup_process(uint32_t pid, ksym_write write, void* context,
                                size_t* skipped);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif  // KSYM_KSYM_H_
