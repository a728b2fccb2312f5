// SPDX-License-Identifier: Apache-2.0
/* A program of a user who has only the packages: compiles a kernel to bytes and prints the result. */
#include <kiln/kiln.h>

#include <stdio.h>
#include <string.h>

static int fail(kiln_error* error) {
  printf("%s: %s\n%s", kiln_code_name(kiln_error_code(error)), kiln_error_message(error), kiln_error_log(error));
  kiln_error_free(error);
  return 1;
}

int main(void) {
  static const char source[] = "#include \"half.h\"\nextern \"C\" __global__ void scale(float* x) { *x *= HALF; }\n";
  kiln_error* error = NULL;
  kiln_session* session = NULL;
  kiln_unit* unit = NULL;
  kiln_artifact* artifact = NULL;
  if (strcmp(kiln_version(), "") == 0 || kiln_c_api_version() < KILN_C_API_VERSION) return 2;
  if (kiln_session_open(NULL, &session, &error) != KILN_OK) return fail(error);
  if (kiln_unit_cuda("scale.cu", source, &unit, &error) != KILN_OK) return fail(error);
  if (kiln_unit_add_header(unit, "half.h", "#define HALF 0.5f\n", &error) != KILN_OK) return fail(error);
  if (kiln_unit_add_entry(unit, "scale", &error) != KILN_OK) return fail(error);
  if (kiln_session_artifact(session, unit, "sm_80", KILN_FOREVER, &artifact, &error) != KILN_OK) return fail(error);
  printf("kiln %s: %s for %s, a cubin: %s\n", kiln_version(), kiln_artifact_symbol(artifact, "scale"),
         kiln_artifact_target(artifact), kiln_artifact_form(artifact) == KILN_FORM_CUBIN ? "yes" : "no");
  kiln_artifact_free(artifact);
  kiln_unit_free(unit);
  kiln_session_free(session);
  return 0;
}
