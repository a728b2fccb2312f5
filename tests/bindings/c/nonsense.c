// SPDX-License-Identifier: Apache-2.0
// Passes NULL, objects of another type and invalid numbers to every function of kiln.h: each returns an error or
// nothing, and the program continues. No driver is opened and nothing is compiled.
#include <stdlib.h>
#include <string.h>

#include "check.h"

// Invalid values for an object: NULL, a number, memory that is not an object, an odd address.
enum { KINDS = 4 };
static uint64_t no_object[64];
static void* nonsense[KINDS];

static void on_event(const kiln_event* event, void* user) {
  (void)event;
  (void)user;
}
static void* allocate(size_t bytes, void* stream, void* user) {
  (void)bytes;
  (void)stream;
  return user;
}
static void release(void* memory, size_t bytes, void* stream, void* user) {
  (void)memory;
  (void)bytes;
  (void)stream;
  (void)user;
}

#define INVALID(code) FAILED((code), KILN_INVALID_ARGUMENT)

static void make_units(kiln_unit* good) {
  kiln_error* error = NULL;
  kiln_unit* unit = good;
  const char* const hole[] = {"nvcc", NULL};
  const char* const number[] = {(const char*)nonsense[1]};
  kiln_link_part part = {.name = "part", .form = KILN_FORM_PTX, .data = "x", .bytes = 0};
  INVALID(kiln_unit_cuda(NULL, "", &unit, &error));
  CHECK(unit == NULL);
  INVALID(kiln_unit_cuda("name", NULL, &unit, &error));
  INVALID(kiln_unit_cuda("name", "", NULL, &error));
  CHECK(kiln_unit_cuda(NULL, NULL, NULL, NULL) == KILN_INVALID_ARGUMENT);
  INVALID(kiln_unit_opencl(NULL, NULL, &unit, &error));
  INVALID(kiln_unit_cuda_file(NULL, &unit, &error));
  INVALID(kiln_unit_opencl_file("k.cl", NULL, &error));
  INVALID(kiln_unit_link("name", NULL, 1, &unit, &error));
  INVALID(kiln_unit_link("name", NULL, 0, &unit, &error));
  INVALID(kiln_unit_link("name", &part, SIZE_MAX, &unit, &error));
  INVALID(kiln_unit_link("name", &part, 1, &unit, &error));
  part.bytes = 1;
  part.form = (kiln_form)99;
  INVALID(kiln_unit_link("name", &part, 1, &unit, &error));
  part.unit = nonsense[2];
  INVALID(kiln_unit_link("name", &part, 1, &unit, &error));
  INVALID(kiln_unit_command("name", "", hole, 2, &unit, &error));
  INVALID(kiln_unit_command("name", "", number, 1, &unit, &error));
  INVALID(kiln_unit_command("name", "", NULL, 2, &unit, &error));
  INVALID(kiln_unit_cccl(NULL, &unit, &error));
  INVALID(kiln_unit_cccl("no_such_algorithm", &unit, &error));
  INVALID(kiln_unit_cccl("{\"algorithm\": 7", &unit, &error));
  INVALID(kiln_unit_instance(good, NULL, "", &unit, &error));
  INVALID(kiln_unit_add_entry(good, NULL, &error));
  INVALID(kiln_unit_add_option(good, NULL, &error));
  INVALID(kiln_unit_add_include_root(good, NULL, NULL, &error));
  INVALID(kiln_unit_add_header(good, "name", NULL, &error));
  INVALID(kiln_unit_add_header(good, NULL, "", &error));
  INVALID(kiln_unit_set_preamble(good, NULL, &error));
  INVALID(kiln_unit_add_served_by(good, NULL, &error));
  INVALID(kiln_unit_key(good, NULL, &error));
}

static void use_units(void* none) {
  kiln_error* error = NULL;
  kiln_unit* unit = NULL;
  char hex[65];
  INVALID(kiln_unit_copy(none, &unit, &error));
  INVALID(kiln_unit_instance(none, "entry", "", &unit, &error));
  INVALID(kiln_unit_add_entry(none, "entry", &error));
  INVALID(kiln_unit_add_option(none, "option", &error));
  INVALID(kiln_unit_add_include_root(none, "path", NULL, &error));
  INVALID(kiln_unit_add_header(none, "name", "", &error));
  INVALID(kiln_unit_set_preamble(none, "", &error));
  INVALID(kiln_unit_add_served_by(none, "acme", &error));
  INVALID(kiln_unit_key(none, hex, &error));
  CHECK(kiln_unit_kind(none) == NULL && kiln_unit_name(none) == NULL);
  kiln_unit_free(none);
}

static void use_options(void* none, kiln_options* good) {
  kiln_error* error = NULL;
  kiln_allocator allocator = {.size = sizeof allocator, .allocate = allocate, .release = release};
  INVALID(kiln_options_set(none, "jobs", "1", 0, &error));
  INVALID(kiln_options_on_event(none, on_event, NULL, NULL, &error));
  INVALID(kiln_options_allocator(none, &allocator, &error));
  INVALID(kiln_options_opencl(none, no_object, no_object, &error));
  INVALID(kiln_options_collect_metrics(none, 1, &error));
  INVALID(kiln_options_trust(none, "key", "*", &error));
  INVALID(kiln_options_minimum_epoch(none, "a", 1, &error));
  INVALID(kiln_options_trust_live(none, "a", 1, &error));
  INVALID(kiln_options_revoke(none, "key", &error));
  kiln_options_free(none);

  INVALID(kiln_options_new(NULL, &error));
  INVALID(kiln_options_set(good, NULL, "1", 0, &error));
  INVALID(kiln_options_set(good, "jobs", NULL, 0, &error));
  INVALID(kiln_options_on_event(good, NULL, NULL, NULL, &error));
  INVALID(kiln_options_allocator(good, NULL, &error));
  INVALID(kiln_options_opencl(good, NULL, no_object, &error));
  INVALID(kiln_options_trust(good, NULL, NULL, &error));
  INVALID(kiln_options_minimum_epoch(good, NULL, 1, &error));
  INVALID(kiln_options_trust_live(good, "a", 366, &error));
  INVALID(kiln_options_revoke(good, NULL, &error));
  allocator.backend = (kiln_backend)7;
  INVALID(kiln_options_allocator(good, &allocator, &error));
  allocator.allocate = NULL;
  INVALID(kiln_options_allocator(good, &allocator, &error));
}

static void use_session(void* none, const kiln_unit* unit) {
  kiln_error* error = NULL;
  kiln_session* session = NULL;
  kiln_artifact* artifact = NULL;
  kiln_kernel* kernel = NULL;
  kiln_stream* stream = NULL;
  kiln_devices* devices = NULL;
  kiln_status* status = NULL;
  kiln_string* text = NULL;
  kiln_not_ready* not_ready = NULL;
  kiln_get_options wait = {.size = sizeof wait};
  if (none != NULL) INVALID(kiln_session_open(none, &session, &error));
  INVALID(kiln_session_request(none, &unit, 1, NULL, &error));
  INVALID(kiln_session_cancel(none, &unit, 1, NULL, &error));
  INVALID(kiln_session_retry(none, &unit, 1, NULL, &error));
  INVALID(kiln_session_refresh(none, &unit, 1, &error));
  INVALID(kiln_session_release(none, &unit, 1, &error));
  INVALID(kiln_session_ensure_warm(none, &unit, 1, 0, &not_ready, &error));
  INVALID(kiln_session_write_trace(none, &error));
  INVALID(kiln_session_make_current(none, KILN_BACKEND_OPENCL, 0, &error));
  INVALID(kiln_session_artifact(none, unit, "sm_90", 0, &artifact, &error));
  INVALID(kiln_session_get(none, unit, NULL, 0, &kernel, &error));
  INVALID(kiln_session_get_ex(none, unit, NULL, &wait, &kernel, &error));
  INVALID(kiln_session_metrics(none, &text, &error));
  INVALID(kiln_stream_new(none, KILN_BACKEND_OPENCL, &stream, &error));
  INVALID(kiln_devices_new(none, KILN_BACKEND_OPENCL, &devices, &error));
  INVALID(kiln_status_new(none, &status, &error));
  CHECK(kiln_session_ready(none, unit, NULL) == 0);
  kiln_session_free(none);
}

static void ask_session(kiln_session* session, void* none, const kiln_unit* unit) {
  kiln_error* error = NULL;
  kiln_artifact* artifact = NULL;
  kiln_kernel* kernel = NULL;
  kiln_not_ready* not_ready = NULL;
  const kiln_unit* list[] = {unit, none};
  INVALID(kiln_session_request(session, list, 2, NULL, &error));
  INVALID(kiln_session_cancel(session, list, 2, NULL, &error));
  INVALID(kiln_session_retry(session, list, 2, NULL, &error));
  INVALID(kiln_session_refresh(session, list, 2, &error));
  INVALID(kiln_session_release(session, list, 2, &error));
  INVALID(kiln_session_ensure_warm(session, list, 2, 0, &not_ready, &error));
  INVALID(kiln_session_ensure_warm(session, list, 1, -1, &not_ready, &error));
  INVALID(kiln_session_ensure_warm(session, list, 1, 0, NULL, &error));
  INVALID(kiln_session_request(session, NULL, 2, NULL, &error));
  INVALID(kiln_session_request(session, list, SIZE_MAX, NULL, &error));
  INVALID(kiln_session_request(session, list, 1, "sm_", &error));
  INVALID(kiln_session_artifact(session, none, "sm_90", 0, &artifact, &error));
  INVALID(kiln_session_artifact(session, unit, NULL, 0, &artifact, &error));
  INVALID(kiln_session_artifact(session, unit, "no such thing", 0, &artifact, &error));
  INVALID(kiln_session_artifact(session, unit, "sm_90", -1, &artifact, &error));
  INVALID(kiln_session_artifact(session, unit, "sm_90", 0, NULL, &error));
  INVALID(kiln_session_get(session, none, NULL, 0, &kernel, &error));
  INVALID(kiln_session_get(session, unit, NULL, 0, NULL, &error));
  INVALID(kiln_session_get(session, unit, NULL, INT64_MIN, &kernel, &error));
  INVALID(kiln_session_get_ex(session, unit, NULL, NULL, &kernel, &error));
  INVALID(kiln_session_make_current(session, (kiln_backend)-1, 0, &error));
  INVALID(kiln_stream_new(session, KILN_BACKEND_OPENCL, NULL, &error));
  INVALID(kiln_devices_new(session, KILN_BACKEND_OPENCL, NULL, &error));
  INVALID(kiln_status_new(session, NULL, &error));
  INVALID(kiln_session_metrics(session, NULL, &error));
  INVALID(kiln_session_open(NULL, NULL, &error));
  INVALID(kiln_session_shared(NULL, &error));
  CHECK(kiln_session_ready(session, none, NULL) == 0);
}

static void use_the_rest(void* none) {
  kiln_error* error = NULL;
  kiln_buffer* buffer = NULL;
  void* function = NULL;
  char byte = 0;
  kiln_launch how = {.size = sizeof how};
  kiln_occupancy occupancy = {.size = sizeof occupancy};
  kiln_device device = {.size = sizeof device};
  kiln_totals totals = {.size = sizeof totals};
  kiln_unit_status unit = {.size = sizeof unit};
  kiln_cccl_info info = {.size = sizeof info};
  kiln_not_ready_unit cold = {.size = sizeof cold};
  CHECK(kiln_artifact_data(none) == NULL && kiln_artifact_bytes(none) == 0 && kiln_artifact_form(none) == 0);
  CHECK(kiln_artifact_target(none) == NULL && kiln_artifact_symbol(none, "entry") == NULL);
  CHECK(kiln_artifact_entry(none, 0) == NULL);
  INVALID(kiln_artifact_cccl(none, &info, &error));
  CHECK(kiln_artifact_compiler(none) == NULL && kiln_artifact_log(none) == NULL && kiln_artifact_cost_ms(none) == 0);
  INVALID(kiln_kernel_launch(none, &how, NULL, 0, &error));
  INVALID(kiln_kernel_function(none, &function, &error));
  INVALID(kiln_kernel_occupancy(none, 0, &occupancy, &error));
  CHECK(kiln_kernel_native(none) == NULL && kiln_kernel_name(none) == NULL);
  INVALID(kiln_stream_synchronize(none, &error));
  CHECK(kiln_stream_native(none) == NULL);
  INVALID(kiln_buffer_new(none, NULL, 1, &buffer, &error));
  INVALID(kiln_buffer_upload(none, &byte, 1, &error));
  INVALID(kiln_buffer_download(&byte, none, 1, &error));
  CHECK(kiln_buffer_native(none) == NULL && kiln_buffer_bytes(none) == 0 && kiln_buffer_argument(none).data == NULL);
  INVALID(kiln_scope_end(none, &error));
  CHECK(kiln_devices_count(none) == 0 && kiln_status_count(none) == 0);
  INVALID(kiln_devices_at(none, 0, &device, &error));
  INVALID(kiln_status_totals(none, &totals, &error));
  INVALID(kiln_status_at(none, 0, &unit, &error));
  CHECK(kiln_not_ready_count(none) == 0);
  INVALID(kiln_not_ready_at(none, 0, &cold, &error));
  CHECK(kiln_string_data(none) == NULL && kiln_string_size(none) == 0);
  CHECK(kiln_error_code(none) == KILN_OK && kiln_error_message(none)[0] == '\0' && kiln_error_log(none)[0] == '\0');
  kiln_artifact_free(none);
  kiln_kernel_free(none);
  kiln_stream_free(none);
  kiln_buffer_free(none);
  kiln_devices_free(none);
  kiln_status_free(none);
  kiln_not_ready_free(none);
  kiln_string_free(none);
  kiln_error_free(none);
}

// Struct sizes: too small, too large, and larger than this library knows.
static void give_sizes(kiln_session* session, const kiln_unit* unit) {
  kiln_error* error = NULL;
  kiln_kernel* kernel = NULL;
  kiln_status* status = NULL;
  struct {
    kiln_get_options wait;
    uint64_t later;
  } newer = {.wait = {.size = sizeof newer, .timeout_ns = -1}, .later = 1};
  kiln_totals totals = {.size = 0};
  GOOD(kiln_status_new(session, &status, &error));
  INVALID(kiln_status_totals(status, &totals, &error));
  INVALID(kiln_status_totals(status, NULL, &error));
  totals.size = SIZE_MAX;
  INVALID(kiln_status_totals(status, &totals, &error));
  INVALID(kiln_status_at(status, 0, NULL, &error));
  kiln_status_free(status);
  FAILED(kiln_session_get_ex(session, unit, NULL, &newer.wait, &kernel, &error), KILN_UNSUPPORTED);
  newer.later = 0;  // the unknown field is not used: the struct is read, and its timeout is negative
  INVALID(kiln_session_get_ex(session, unit, NULL, &newer.wait, &kernel, &error));
}

static void begin_scopes(void) {
  kiln_error* error = NULL;
  kiln_scope* scope = NULL;
  kiln_operation operation = {.size = sizeof operation, .name = "test"};
  INVALID(kiln_operation_begin(NULL, &scope, &error));
  INVALID(kiln_operation_begin(&operation, NULL, &error));
  operation.residency = (kiln_residency)7;
  INVALID(kiln_operation_begin(&operation, &scope, &error));
  operation = (kiln_operation){.size = sizeof operation, .name = ""};
  INVALID(kiln_operation_begin(&operation, &scope, &error));
  operation = (kiln_operation){.size = sizeof operation, .name = "test", .reserved = 1};
  INVALID(kiln_operation_begin(&operation, &scope, &error));
  operation = (kiln_operation){.size = 1, .name = "test"};
  INVALID(kiln_operation_begin(&operation, &scope, &error));
  INVALID(kiln_stage_begin(NULL, &scope, &error));
  INVALID(kiln_stage_begin("", &scope, &error));
  INVALID(kiln_stage_begin("stage", NULL, &error));
  INVALID(kiln_purpose_begin((kiln_purpose)-1, &scope, &error));
  INVALID(kiln_purpose_begin(KILN_PURPOSE_INPUT, NULL, &error));
  CHECK(scope == NULL);
  kiln_count_launch();
}

int main(void) {
  kiln_error* error = NULL;
  kiln_options* options = NULL;
  kiln_unit *unit = NULL, *copy = NULL;
  kiln_session *session = NULL, *shared = NULL;
  char hex[65] = "", other[65] = "";
  GOOD(kiln_options_new(&options, &error));
  GOOD(kiln_unit_cuda("unit", "", &unit, &error));
  GOOD(kiln_unit_copy(unit, &copy, &error));
  GOOD(kiln_unit_add_entry(copy, "entry", &error));
  GOOD(kiln_unit_key(unit, hex, &error));
  GOOD(kiln_unit_key(copy, other, &error));
  CHECK(strlen(hex) == 64 && strlen(other) == 64 && strcmp(hex, other) != 0);
  kiln_unit_free(copy);
  GOOD(kiln_session_open(options, &session, &error));
  GOOD(kiln_session_shared(&shared, &error));
  kiln_session_free(shared);
  kiln_string* another = NULL;
  GOOD(kiln_session_metrics(session, &another, &error));

  nonsense[1] = (void*)(uintptr_t)1;
  nonsense[2] = no_object;
  nonsense[3] = (char*)no_object + 1;
  make_units(unit);
  for (int i = 0; i < KINDS; ++i) {
    use_units(nonsense[i]);
    use_options(nonsense[i], options);
    use_session(nonsense[i], unit);
    ask_session(session, nonsense[i], unit);
    use_the_rest(nonsense[i]);
  }
  // An object of another type is rejected, and another type's free function does not destroy it.
  use_units(another);
  use_options(another, options);
  use_session(another, unit);
  ask_session(session, another, unit);
  kiln_unit_free((void*)another);
  CHECK(kiln_string_data(another) != NULL);
  give_sizes(session, unit);
  begin_scopes();
  CHECK(strcmp(kiln_code_name((kiln_code)77), "unknown") == 0 && strcmp(kiln_code_name(KILN_OK), "ok") == 0);
  CHECK(strcmp(kiln_code_name(KILN_CAPTURING), "capturing") == 0);
  CHECK(strcmp(kiln_state_name((kiln_state)9), "unknown") == 0);
  CHECK(strcmp(kiln_origin_name((kiln_origin)9), "unknown") == 0);
  CHECK(kiln_c_api_version() == KILN_C_API_VERSION && kiln_version()[0] != '\0');
  kiln_string_free(another);
  kiln_session_free(session);
  kiln_unit_free(unit);
  kiln_options_free(options);
  return failures != 0;
}
