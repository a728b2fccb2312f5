// SPDX-License-Identifier: Apache-2.0
// A C program that uses everything in kiln.h on PoCL: it requests, gets, launches and checks two units, reads events
// and status, and causes each kind of error that is possible without a GPU.
//   program CACHE_DIR TRACE_THAT_CANNOT_BE_WRITTEN NUMBER_THAT_NO_CACHE_HAS_SEEN
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "check.h"

enum { ITEMS = 1024 };
static const int64_t kLong = INT64_C(120000000000);

typedef struct Reported {
  atomic_int events, launched, named, freed, in_stage, materialized;
  atomic_ullong run;
} Reported;

static void on_event(const kiln_event* event, void* user) {
  Reported* reported = user;
  ++reported->events;
  if (event->size != sizeof *event || event->message == NULL || event->purpose == NULL || event->category == NULL ||
      event->pinned != -1 || event->shared_bytes != 0 || (event->detail_count == 0) != (event->details == NULL))
    abort();  // PoCL knows neither pinned nor shared memory
  if (strcmp(event->kind, "launched") == 0 && event->grid_blocks == ITEMS / 64 && event->block_threads == 64 &&
      strchr(event->message, ':') == NULL) {
    ++reported->launched;  // a failed launch has the reason after a colon
  }
  if (event->dispatch != 0 && strcmp(event->operation, "test.shift") == 0 && event->rows == ITEMS &&
      strcmp(event->residency, "host") == 0) {
    reported->run = event->dispatch;
    reported->in_stage += strcmp(event->kind, "launched") == 0 && strcmp(event->stage, "add") == 0;
    reported->materialized += strcmp(event->kind, "copied") == 0 && strcmp(event->purpose, "materialize") == 0;
  }
  if (strcmp(event->kind, "blocking_compile") == 0 && strstr(event->message, "program.c:7 ") != NULL) ++reported->named;
}
static void on_free(void* user) { ++((Reported*)user)->freed; }

static kiln_session* open_session(const char* cache, const char* name, const char* value, Reported* reported) {
  kiln_error* error = NULL;
  kiln_options* options = NULL;
  kiln_session* session = NULL;
  GOOD(kiln_options_new(&options, &error));
  GOOD(kiln_options_set(options, "cache.dir", cache, 1, &error));
  if (name != NULL) GOOD(kiln_options_set(options, name, value, 1, &error));
  if (reported != NULL) GOOD(kiln_options_on_event(options, on_event, reported, on_free, &error));
  GOOD(kiln_options_collect_metrics(options, 1, &error));
  if (!GOOD(kiln_session_open(options, &session, &error))) exit(1);
  kiln_options_free(options);
  return session;
}

// Returns the unit with kernel `name`.
static kiln_unit* unit_of(const char* name, const char* source) {
  kiln_error* error = NULL;
  kiln_unit* unit = NULL;
  GOOD(kiln_unit_opencl(name, source, &unit, &error));
  GOOD(kiln_unit_add_entry(unit, name, &error));
  CHECK(strcmp(kiln_unit_name(unit), name) == 0 && strcmp(kiln_unit_kind(unit), "opencl") == 0);
  return unit;
}

static void launch(const kiln_kernel* kernel, const kiln_stream* stream, const kiln_buffer* x, float by) {
  kiln_error* error = NULL;
  const kiln_argument arguments[] = {kiln_buffer_argument(x), {&by, sizeof by}};
  const kiln_launch how = {
      .size = sizeof how, .stream = kiln_stream_native(stream), .grid = {ITEMS / 64, 1, 1}, .block = {64, 1, 1}};
  GOOD(kiln_kernel_launch(kernel, &how, arguments, 2, &error));
  kiln_launch clusters = how;
  clusters.cluster.x = 2;
  FAILED(kiln_kernel_launch(kernel, &clusters, arguments, 2, &error), KILN_UNSUPPORTED);
  FAILED(kiln_kernel_launch(kernel, &how, arguments, 1, &error), KILN_INVALID_ARGUMENT);
  kiln_launch incomplete = how;
  incomplete.stream = NULL;
  FAILED(kiln_kernel_launch(kernel, &incomplete, arguments, 2, &error), KILN_INVALID_ARGUMENT);
  incomplete = how;
  incomplete.grid.y = 0;
  FAILED(kiln_kernel_launch(kernel, &incomplete, arguments, 2, &error), KILN_INVALID_ARGUMENT);
  incomplete = how;
  incomplete.block.z = 0;
  FAILED(kiln_kernel_launch(kernel, &incomplete, arguments, 2, &error), KILN_INVALID_ARGUMENT);
}

static int all_are(const kiln_buffer* buffer, float wanted) {
  kiln_error* error = NULL;
  float x[ITEMS];
  if (!GOOD(kiln_buffer_download(x, buffer, sizeof x, &error))) return 0;
  FAILED(kiln_buffer_download(x, buffer, sizeof x + 1, &error), KILN_INVALID_ARGUMENT);
  for (int i = 0; i < ITEMS; ++i) {
    if (x[i] != wanted) return 0;
  }
  return 1;
}

static int end_elsewhere(void* scope) { return (int)kiln_scope_end(scope, NULL); }

// Shifts within a declared operation: events carry the names, another thread cannot end a scope, and a scope that ends
// early does not end the inner one.
static void shift_as_operation(const kiln_kernel* shift, const kiln_stream* stream, const kiln_buffer* buffer) {
  kiln_error* error = NULL;
  kiln_scope *run = NULL, *stage = NULL, *purpose = NULL;
  const kiln_operation operation = {
      .size = sizeof operation, .name = "test.shift", .rows = ITEMS, .residency = KILN_RESIDENCY_HOST};
  GOOD(kiln_operation_begin(&operation, &run, &error));
  GOOD(kiln_stage_begin("add", &stage, &error));
  launch(shift, stream, buffer, 1);
  thrd_t thread;
  int code = 0;
  if (!CHECK(thrd_create(&thread, end_elsewhere, stage) == thrd_success)) exit(1);
  thrd_join(thread, &code);
  CHECK(code == KILN_INVALID_ARGUMENT);
  GOOD(kiln_purpose_begin(KILN_PURPOSE_MATERIALIZE, &purpose, &error));
  GOOD(kiln_scope_end(stage, &error));
  CHECK(all_are(buffer, 7));
  GOOD(kiln_scope_end(purpose, &error));
  kiln_count_launch();
  GOOD(kiln_scope_end(run, &error));
}

static kiln_kernel* got(kiln_session* session, const kiln_unit* unit, const char* entry) {
  kiln_error* error = NULL;
  kiln_kernel* kernel = NULL;
  kiln_get_options wait = {.size = sizeof wait, .timeout_ns = kLong, .file = __FILE__, .line = __LINE__};
  if (!GOOD(kiln_session_get_ex(session, unit, entry, &wait, &kernel, &error))) exit(1);
  CHECK(kiln_session_ready(session, unit, entry) == 1);
  CHECK(kiln_kernel_native(kernel) != NULL && strcmp(kiln_kernel_name(kernel), kiln_unit_name(unit)) == 0);
  void* function = NULL;
  GOOD(kiln_kernel_function(kernel, &function, &error));
  kiln_occupancy busy = {.size = sizeof busy};
  GOOD(kiln_kernel_occupancy(kernel, 0, &busy, &error));
  CHECK(function != NULL && busy.block_size >= 1 && busy.min_grid_size >= 1 && busy.size == sizeof busy);
  return kernel;
}

static void look_at_status(kiln_session* session) {
  kiln_error* error = NULL;
  kiln_status* status = NULL;
  kiln_totals totals = {.size = sizeof totals};
  GOOD(kiln_status_new(session, &status, &error));
  GOOD(kiln_status_totals(status, &totals, &error));
  CHECK(totals.submitted == 2 && totals.compiled + totals.cached == 2 && totals.failed == 0);
  CHECK(kiln_status_count(status) == 2);
  for (size_t i = 0; i < kiln_status_count(status); ++i) {
    kiln_unit_status unit = {.size = sizeof unit};
    if (!GOOD(kiln_status_at(status, i, &unit, &error))) continue;
    CHECK(unit.state == KILN_STATE_READY && unit.error[0] == '\0');
    printf("%s for %s: %s, %s, %.1f ms\n", unit.unit, unit.target, kiln_state_name(unit.state),
           kiln_origin_name(unit.origin), unit.ms);
  }
  // A caller compiled before a struct grew gets the fields that it knows, and nothing is written after them.
  kiln_totals old = {.size = 2 * sizeof(size_t), .failed = 77};
  GOOD(kiln_status_totals(status, &old, &error));
  CHECK(old.submitted == 2 && old.failed == 77 && old.size == 2 * sizeof(size_t));
  kiln_status_free(status);
  kiln_string* text = NULL;
  GOOD(kiln_session_metrics(session, &text, &error));
  CHECK(strstr(kiln_string_data(text), "kiln_") != NULL && strlen(kiln_string_data(text)) == kiln_string_size(text));
  kiln_string_free(text);
}

// Level 1, for the available device.
static void look_at_bytes(kiln_session* session, const kiln_unit* unit) {
  kiln_error* error = NULL;
  kiln_devices* devices = NULL;
  kiln_device device = {.size = sizeof device};
  kiln_artifact* artifact = NULL;
  GOOD(kiln_devices_new(session, KILN_BACKEND_OPENCL, &devices, &error));
  CHECK(kiln_devices_count(devices) >= 1);
  GOOD(kiln_devices_at(devices, 0, &device, &error));
  CHECK(device.name[0] != '\0' && device.memory != 0);
  CHECK(device.is_cpu == 1);  // PoCL
  if (!GOOD(kiln_session_artifact(session, unit, device.target, kLong, &artifact, &error))) return;
  CHECK(kiln_artifact_data(artifact) != NULL && kiln_artifact_bytes(artifact) > 100);
  CHECK(kiln_artifact_form(artifact) == KILN_FORM_OPENCL_BINARY);
  CHECK(strcmp(kiln_artifact_target(artifact), device.target) == 0);
  CHECK(strcmp(kiln_artifact_symbol(artifact, "scale"), "scale") == 0);
  CHECK(kiln_artifact_symbol(artifact, "another") == NULL);
  CHECK(kiln_artifact_compiler(artifact)[0] != '\0' && kiln_artifact_cost_ms(artifact) > 0);
  CHECK(kiln_artifact_log(artifact) != NULL);
  kiln_artifact_free(artifact);
  kiln_devices_free(devices);
}

static void use(const char* cache) {
  static Reported reported;
  kiln_error* error = NULL;
  kiln_session* session = open_session(cache, NULL, NULL, &reported);
  kiln_unit* units[] = {
      unit_of("scale", "kernel void scale(global float* x, float by) { x[get_global_id(0)] *= by; }"),
      unit_of("shift", "kernel void shift(global float* x, float by) { x[get_global_id(0)] += by; }")};
  GOOD(kiln_session_make_current(session, KILN_BACKEND_OPENCL, 0, &error));
  GOOD(kiln_session_request(session, (const kiln_unit* const*)units, 2, NULL, &error));
  kiln_stream* stream = NULL;
  kiln_buffer* buffer = NULL;
  float x[ITEMS];
  for (int i = 0; i < ITEMS; ++i) x[i] = 2;
  GOOD(kiln_stream_new(session, KILN_BACKEND_OPENCL, &stream, &error));
  GOOD(kiln_buffer_new(stream, NULL, sizeof x, &buffer, &error));
  GOOD(kiln_buffer_upload(buffer, x, sizeof x, &error));
  CHECK(kiln_buffer_bytes(buffer) == sizeof x && kiln_buffer_native(buffer) != NULL);
  kiln_kernel* scale = got(session, units[0], NULL);
  kiln_kernel* shift = got(session, units[1], "shift");
  launch(scale, stream, buffer, 3);
  shift_as_operation(shift, stream, buffer);
  CHECK(reported.in_stage > 0 && reported.materialized == 1 && reported.run != 0);
  GOOD(kiln_stream_synchronize(stream, &error));
  look_at_status(session);
  look_at_bytes(session, units[0]);
  // A released unit is removed from the session, but existing objects stay usable. An unchanged kernel stays.
  GOOD(kiln_session_release(session, (const kiln_unit* const*)units, 1, &error));
  GOOD(kiln_session_refresh(session, (const kiln_unit* const*)units + 1, 1, &error));
  CHECK(kiln_session_ready(session, units[0], NULL) == 0 && kiln_session_ready(session, units[1], "shift") == 0);
  kiln_kernel* same = got(session, units[1], "shift");
  CHECK(kiln_kernel_native(same) == kiln_kernel_native(shift));
  kiln_kernel_free(same);
  FAILED(kiln_session_release(session, NULL, 1, &error), KILN_INVALID_ARGUMENT);
  FAILED(kiln_session_refresh(NULL, NULL, 0, &error), KILN_INVALID_ARGUMENT);
  kiln_kernel* none = shift;
  FAILED(kiln_session_get(session, units[0], "another", kLong, &none, &error), KILN_INVALID_ARGUMENT);
  CHECK(none == NULL);
  kiln_kernel_free(shift);

  // The session exists as long as an object of it.
  kiln_session_free(session);
  kiln_unit_free(units[0]);
  kiln_unit_free(units[1]);
  launch(scale, stream, buffer, 2);
  CHECK(all_are(buffer, 14));
  CHECK(reported.launched == 3 && reported.freed == 0);
  kiln_kernel_free(scale);
  kiln_buffer_free(buffer);
  kiln_stream_free(stream);
  CHECK(reported.freed == 1);
}

typedef struct Waiter {
  kiln_session* session;
  const kiln_unit* unit;
  kiln_code code;
  atomic_int done;
} Waiter;

static int wait_for(void* data) {
  Waiter* waiter = data;
  kiln_kernel* kernel = NULL;
  waiter->code = kiln_session_get(waiter->session, waiter->unit, NULL, KILN_FOREVER, &kernel, NULL);
  kiln_kernel_free(kernel);
  waiter->done = 1;
  return 0;
}

static void run_out_of_time(kiln_session* session, const char* nonce) {
  kiln_error* error = NULL;
  kiln_kernel* kernel = NULL;
  char source[256];
  snprintf(source, sizeof source, "kernel void slow(global float* x) { x[0] = %s; }", nonce);
  kiln_unit* unit = unit_of("slow", source);
  CHECK(kiln_session_ready(session, unit, NULL) == 0);
  FAILED(kiln_session_get(session, unit, NULL, 0, &kernel, &error), KILN_TIMED_OUT);
  FAILED(kiln_session_get(session, unit, NULL, -1, &kernel, &error), KILN_INVALID_ARGUMENT);
  // Canceling a request releases the thread that waits for it.
  Waiter waiter = {.session = session, .unit = unit};
  thrd_t thread;
  if (!CHECK(thrd_create(&thread, wait_for, &waiter) == thrd_success)) exit(1);
  const struct timespec moment = {.tv_nsec = 1000000};
  while (!waiter.done) {
    GOOD(kiln_session_cancel(session, (const kiln_unit* const*)&unit, 1, NULL, &error));
    thrd_sleep(&moment, NULL);
  }
  thrd_join(thread, NULL);
  CHECK(waiter.code == KILN_CANCELLED);
  kiln_unit_free(unit);
}

// A plan that is not ready lists its unit with the reason.
static void look_at_plan(kiln_session* session, const kiln_unit* unit, const char* name, int has_target) {
  kiln_error* error = NULL;
  kiln_not_ready* not_ready = NULL;
  kiln_not_ready_unit cold = {.size = sizeof cold};
  GOOD(kiln_session_ensure_warm(session, &unit, 1, kLong, &not_ready, &error));
  CHECK(kiln_not_ready_count(not_ready) == 1);
  if (GOOD(kiln_not_ready_at(not_ready, 0, &cold, &error))) {
    CHECK(strcmp(cold.unit, name) == 0 && cold.reason[0] != '\0' && (cold.target[0] != '\0') == has_target);
  }
  FAILED(kiln_not_ready_at(not_ready, 1, &cold, &error), KILN_INVALID_ARGUMENT);
  kiln_not_ready_free(not_ready);
}

static void fail(const char* cache, const char* trace, const char* nonce) {
  kiln_error* error = NULL;
  kiln_kernel* kernel = NULL;
  kiln_unit* missing = NULL;
  kiln_devices* devices = NULL;
  Reported reported = {0};
  kiln_session* session = open_session(cache, "trace", trace, &reported);
  run_out_of_time(session, nonce);
  kiln_unit* bad = unit_of("bad", "kernel void bad(global float* x) { x[0] = y_is_not_declared; }");
  kiln_get_options wait = {.size = sizeof wait, .timeout_ns = kLong, .file = "program.c", .line = 7};
  kiln_code code = kiln_session_get_ex(session, bad, NULL, &wait, &kernel, &error);
  CHECK(strstr(kiln_error_log(error), "y_is_not_declared") != NULL);
  FAILED(code, KILN_COMPILE_FAILED);
  FAILED(kiln_unit_cuda_file(trace, &missing, &error), KILN_IO);
  look_at_plan(session, bad, "bad", 1);
  GOOD(kiln_session_retry(session, (const kiln_unit* const*)&bad, 1, NULL, &error));
  FAILED(kiln_session_write_trace(session, &error), KILN_IO);
  FAILED(kiln_session_make_current(session, KILN_BACKEND_ANY, 0, &error), KILN_INVALID_ARGUMENT);
  code = kiln_devices_new(session, KILN_BACKEND_CUDA, &devices, &error);
  if (code != KILN_OK) {
    kiln_unit* algorithm = NULL;
    FAILED(code, KILN_UNAVAILABLE);
    GOOD(kiln_unit_cccl("reduce_sum_i32", &algorithm, &error));
    look_at_plan(session, algorithm, "reduce_sum_i32", 0);
    kiln_unit_free(algorithm);
  }
  kiln_devices_free(devices);
  kiln_unit_free(bad);
  kiln_session_free(session);
  CHECK(reported.events > 0 && reported.named == 1 && reported.freed == 1);

  kiln_session* strict = open_session(cache, "compile", "never", NULL);
  kiln_unit* unknown = unit_of("unknown", "kernel void unknown(global float* x) { x[0] = 1; }");
  FAILED(kiln_session_get(strict, unknown, NULL, kLong, &kernel, &error), KILN_DENIED);
  kiln_unit_free(unknown);
  kiln_session_free(strict);
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  CHECK(kiln_c_api_version() == KILN_C_API_VERSION && kiln_version()[0] != '\0');
  use(arguments[1]);
  fail(arguments[1], arguments[2], arguments[3]);
  printf("%s\n", failures == 0 ? "all of it holds" : "some of it does not hold");
  return failures != 0;
}
