// SPDX-License-Identifier: Apache-2.0
// Helpers that the C programs of this directory share: a failed check reports its location, and the program continues.
#ifndef KILN_TESTS_C_CHECK_H
#define KILN_TESTS_C_CHECK_H

#include <kiln/kiln.h>
#include <stdio.h>

static int failures = 0;

static inline int check_at(int holds, const char* what, const char* file, int line) {
  if (!holds) {
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    ++failures;
  }
  return holds;
}
#define CHECK(condition) check_at((condition) != 0, #condition, __FILE__, __LINE__)

// Checks that a call succeeded, and prints its error otherwise.
static inline int good_at(kiln_code code, kiln_error* error, const char* file, int line) {
  if (code == KILN_OK) return check_at(error == NULL, "an error without a code", file, line);
  fprintf(stderr, "%s:%d: %s: %s\n%s", file, line, kiln_code_name(code), kiln_error_message(error),
          kiln_error_log(error));
  kiln_error_free(error);
  ++failures;
  return 0;
}
#define GOOD(code) good_at((code), error, __FILE__, __LINE__)

// Checks that a call failed with this code and a message.
static inline int failed_at(kiln_code code, kiln_error** error, kiln_code wanted, const char* file, int line) {
  int right = check_at(code == wanted, "another code", file, line);
  if (!right) fprintf(stderr, "  %s instead of %s\n", kiln_code_name(code), kiln_code_name(wanted));
  right &= check_at(*error != NULL && kiln_error_code(*error) == code, "the error has another code", file, line);
  right &= check_at(kiln_error_message(*error)[0] != '\0', "the error says nothing", file, line);
  if (!right) fprintf(stderr, "  %s\n", kiln_error_message(*error));
  kiln_error_free(*error);
  *error = NULL;
  return right;
}
#define FAILED(code, wanted) failed_at((code), &error, (wanted), __FILE__, __LINE__)

#endif
