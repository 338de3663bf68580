// SPDX-License-Identifier: Apache-2.0
// bare code: works in code that nothing describes (bare_code.s). bare nettle:
// in that of Nettle's SHA-256.

#include <nettle/sha2.h>
#include <stdint.h>
#include <string.h>

#include "workload.h"

void BareLoop(uint64_t rounds);

static NOINLINE int WorkInCode(void) {
  BareLoop(1000);
  return 1;
}

static NOINLINE int WorkInNettle(void) {
  static uint8_t data[1 << 16];
  struct sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, sizeof(data), data);
  return (int)context.index + 1;
}

int main(int argc, char** argv) {
  const int is_nettle = argc > 1 && strcmp(argv[1], "nettle") == 0;
  LimitLife();
  SayReady();
  for (int done = 1; done != 0;)
    done = is_nettle ? WorkInNettle() : WorkInCode();
  return 0;
}
