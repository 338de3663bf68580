// SPDX-License-Identifier: Apache-2.0
// embedded LIBPYTHON KEYS ARGUMENT...: runs the interpreter of a library with
// these arguments, after it has taken that many pthread keys.

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  for (long i = atol(argv[2]); i > 0; --i) {
    pthread_key_t key;
    if (pthread_key_create(&key, NULL) != 0) return 1;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void* symbol = library == NULL ? NULL : dlsym(library, "Py_BytesMain");
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*run)(int, char**);
  memcpy(&run, &symbol, sizeof(symbol));
  argv[2] = argv[0];
  return run(argc - 2, argv + 2);
}
