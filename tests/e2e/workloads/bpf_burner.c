// SPDX-License-Identifier: Apache-2.0
// bpf_burner NAME burn SECONDS: loads a BPF program called NAME, lets it burn
// time in the kernel that long, unloads it, and sleeps.
// bpf_burner NAME storm TIMES: loads, runs for a moment and unloads it, TIMES
// times, then says "done".

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workload.h"

#define LOOP_TURNS 1000

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// r0 = 0; r1 = LOOP_TURNS; do r0 += r1; while (--r1 != 0); return r0
static int Load(const char* name) {
  const struct bpf_insn program[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .imm = LOOP_TURNS},
      {.code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = 0, .src_reg = 1},
      {.code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = 1, .imm = 1},
      {.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 1, .off = -3, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT},
  };
  const int fd =
      bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, name, "GPL", program,
                    sizeof(program) / sizeof(program[0]), NULL);
  if (fd < 0) {
    perror("bpf_prog_load");
    exit(1);
  }
  return fd;
}

static void Run(int fd, int times) {
  char packet[64] = {0};
  struct bpf_test_run_opts options;
  memset(&options, 0, sizeof(options));
  options.sz = sizeof(options);
  options.data_in = packet;
  options.data_size_in = sizeof(packet);
  options.repeat = times;
  if (bpf_prog_test_run_opts(fd, &options) != 0) {
    perror("bpf_prog_test_run");
    exit(1);
  }
}

int main(int argc, char** argv) {
  LimitLife();
  if (argc != 4) return 2;
  prctl(PR_SET_NAME, argv[1]);
  SayReady();
  if (strcmp(argv[2], "burn") == 0) {
    const int fd = Load(argv[1]);
    const double end = Now() + atof(argv[3]);
    while (Now() < end) Run(fd, 10000);
    close(fd);
  } else {
    for (int i = atoi(argv[3]); i > 0; --i) {
      const int fd = Load(argv[1]);
      Run(fd, 500);
      close(fd);
    }
  }
  printf("done\n");
  fflush(stdout);
  for (;;) pause();
}
