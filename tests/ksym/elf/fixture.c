// SPDX-License-Identifier: Apache-2.0
/* A library whose code has one of each kind of symbol. */
/* The names are what the tests look up: reserved ones, and labels' own. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
#define _GNU_SOURCE
#include <unistd.h>

__attribute__((noinline)) static int fixture_static(int x) { return x * 7; }

int fixture_global(int x) { return fixture_static(x) + 1; }

/* Through the procedure linkage table. */
int fixture_calls_out(void) { return (int)getppid() + (int)getpid(); }

/* Two public names and a private one of the same bytes. */
int fixture_alias(int) __attribute__((alias("__fixture_alias")));
int __fixture_alias(int x) { return x ^ 0x55; }

static int chosen(void) { return 42; }
static int (*choose(void))(void) { return chosen; }
int fixture_ifunc(void) __attribute__((ifunc("choose")));

/* Hands the addresses of symbols that C cannot name to the test. */
extern const char fixture_outer[], fixture_inner[], fixture_notype[];
extern const char fixture_unsized[];
const void* fixture_address(int which) {
  switch (which) {
    case 0:
      return fixture_outer;
    case 1:
      return fixture_inner;
    case 2:
      return fixture_notype;
    case 3:
      return fixture_unsized;
    case 4:
      return (const void*)&fixture_static;
    default:
      return (const void*)&choose;
  }
}

/* 16 bytes of fixture_outer, 8 of fixture_inner within it, 8 more of the outer
   one, with names in between that no reader may show. */
__asm__(
    ".pushsection .text\n"
    ".balign 16\n"
    ".hidden fixture_outer, fixture_inner, fixture_notype, fixture_unsized\n"
    ".globl fixture_outer, fixture_inner, fixture_notype, fixture_unsized\n"
    ".type fixture_outer, @function\n"
    "fixture_outer: .skip 4, 0x90\n"
    ".type .Lkept, @function\n"
    ".Lkept: .skip 4, 0x90\n"
    ".size .Lkept, . - .Lkept\n"
    ".type \"$x\", @function\n"
    "\"$x\": .skip 8, 0x90\n"
    ".size \"$x\", . - \"$x\"\n"
    ".type fixture_inner, @function\n"
    "fixture_inner: .skip 8, 0x90\n"
    ".size fixture_inner, . - fixture_inner\n"
    ".skip 8, 0x90\n"
    ".size fixture_outer, . - fixture_outer\n"
    ".skip 16, 0xcc\n"
    "fixture_notype: .skip 16, 0x90\n"
    ".size fixture_notype, . - fixture_notype\n"
    ".type fixture_unsized, @function\n"
    "fixture_unsized: .skip 8, 0x90\n"
    ".popsection\n");
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */
