// SPDX-License-Identifier: Apache-2.0
#ifndef KSYM_TESTS_C_API_CHECK_H_
#define KSYM_TESTS_C_API_CHECK_H_

#include <stdio.h>
#include <string.h>

extern int failed_checks;

// Counts and prints what does not hold.
#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      printf("%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
             ksym_last_error());                                            \
      ++failed_checks;                                                      \
    }                                                                       \
  } while (0)

#define CHECK_TEXT(left, right)                                     \
  do {                                                              \
    const char* left_text = (left);                                 \
    const char* right_text = (right);                               \
    if (left_text == NULL || strcmp(left_text, right_text) != 0) {  \
      printf("%s:%d: '%s', not '%s'\n", __FILE__, __LINE__,         \
             left_text == NULL ? "(null)" : left_text, right_text); \
      ++failed_checks;                                              \
    }                                                               \
  } while (0)

void test_answers(const char* program);

#endif  // KSYM_TESTS_C_API_CHECK_H_
