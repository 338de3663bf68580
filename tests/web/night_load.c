// SPDX-License-Identifier: Apache-2.0
// night_load PERCENT [CALM_SECONDS]: a server that answers requests with that
// share of a CPU. After CALM_SECONDS one request finds that
// the prices are stale and sorts them all anew, which takes a second of CPU
// time; then it prints when that began and ended, in seconds since 1970.

#include <stdlib.h>
#include <time.h>

#include "../e2e/workloads/workload.h"

enum { kPrices = 400, kTurnsOfRequest = 20000, kTurnsOfComparison = 20 };
static const double kTickSeconds = 0.02;
static const double kSpikeSeconds = 1;

static unsigned prices[kPrices];
static int are_stale;

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static NOINLINE int compare_prices(unsigned a, unsigned b) {
  Work(kTurnsOfComparison);
  KEEP_FRAME(1);
  return a > b;
}

static NOINLINE void sort_prices(void) {
  for (int i = 0; i < kPrices; ++i) {
    prices[i] = (unsigned)i * 7919 % kPrices;
  }
  for (int i = 1; i < kPrices; ++i) {
    const unsigned price = prices[i];
    int at = i;
    for (; at > 0 && compare_prices(prices[at - 1], price); --at) {
      prices[at] = prices[at - 1];
    }
    prices[at] = price;
  }
  KEEP_FRAME(2);
}

// One currency after the other.
static NOINLINE void reload_prices(void) {
  const double begin = seconds_of(CLOCK_REALTIME);
  const double end = seconds_of(CLOCK_PROCESS_CPUTIME_ID) + kSpikeSeconds;
  while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < end) sort_prices();
  printf("%.3f %.3f\n", begin, seconds_of(CLOCK_REALTIME));
  fflush(stdout);
}

static NOINLINE void find_price(void) {
  if (are_stale) reload_prices();
  are_stale = 0;
  KEEP_FRAME(3);
}

static NOINLINE void render_page(void) {
  Work(kTurnsOfRequest);
  KEEP_FRAME(4);
}

static NOINLINE void handle_request(void) {
  find_price();
  render_page();
  KEEP_FRAME(5);
}

// Until it is killed: for the share of each tick, then it waits, for as long as
// the tick has left on average, so that it is not in step with who samples it.
static NOINLINE void serve(double share, double stale_at) {
  for (;;) {
    const double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    if (stale_at > 0 && seconds_of(CLOCK_REALTIME) > stale_at) {
      are_stale = 1;
      stale_at = 0;
    }
    do {
      handle_request();
    } while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) <
             begin + share * kTickSeconds);
    const double part = 0.5 + rand() / (double)RAND_MAX;
    const struct timespec rest = {
        0, (long)(1e9 * (1 - share) * kTickSeconds * part)};
    nanosleep(&rest, NULL);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  LimitLife();
  const double calm = argc > 2 ? atof(argv[2]) : 0;
  serve(atof(argv[1]) / 100, calm > 0 ? seconds_of(CLOCK_REALTIME) + calm : 0);
}
