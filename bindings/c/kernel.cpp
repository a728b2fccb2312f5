// SPDX-License-Identifier: Apache-2.0
// Levels 2 and 3: native handles and launches.
#include <utility>

#include "c/api_call.hpp"

namespace kiln::c {
namespace {

Result<LaunchConfig> launch_of(const kiln_launch& given) {
  constexpr std::size_t kMaxAttributes = 64;
  if (given.attribute_count > kMaxAttributes) return invalid_argument("how->attribute_count is out of range");
  if (Status right = check_items(given.attributes, given.attribute_count, "how->attributes"); !right) {
    return std::move(right).error();
  }
  if (given.stream == nullptr) {
    return invalid_argument("how->stream is NULL; pass a stream, or KILN_CUDA_DEFAULT_STREAM");
  }
  LaunchConfig config(Grid(given.grid.x, given.grid.y, given.grid.z),
                      Block(given.block.x, given.block.y, given.block.z), StreamRef::from_native(given.stream),
                      given.shared_bytes);
  config.cluster = {given.cluster.x, given.cluster.y, given.cluster.z};
  config.cooperative = given.cooperative != 0;
  config.programmatic = given.programmatic != 0;
  config.priority = given.priority;
  config.attributes.resize(given.attribute_count);
  for (std::size_t i = 0; i < given.attribute_count; ++i) {
    config.attributes[i].id = given.attributes[i].id;
    std::memcpy(config.attributes[i].value.data(), given.attributes[i].value, config.attributes[i].value.size());
  }
  return config;
}

Status get(kiln_session* session, const kiln_unit* unit, const char* entry, const kiln_get_options& wait,
           kiln_kernel** kernel) {
  if (Status there = check_place(kernel, "kernel"); !there) return there;
  if (Status right = check(session, "session"); !right) return right;
  if (Status right = check(unit, "unit"); !right) return right;
  const auto limit = limit_of(wait.timeout_ns);
  if (!limit) return limit.error();
  if (wait.on_stream != 0 && wait.stream == nullptr) {
    return invalid_argument("wait->stream is NULL; pass a stream, or KILN_CUDA_DEFAULT_STREAM");
  }
  const std::string name = is_plausible_pointer(entry) ? entry : "";
  const Caller caller = is_plausible_pointer(wait.file) ? Caller{wait.file, wait.line} : kUnnamedCaller;
  auto got = wait.on_stream != 0 ? session->session.handle(unit->unit, name)
                                       .get_for_stream(StreamRef::from_native(wait.stream), *limit, caller)
                                 : session->session.get(unit->unit, name, *limit, caller);
  if (!got) return std::move(got).error();
  *kernel = new kiln_kernel(*std::move(got));
  return {};
}

Status launch(const kiln_kernel* kernel, const kiln_launch* how, const kiln_argument* arguments, std::size_t count) {
  constexpr std::size_t kMaxArguments = 32768;  // CUDA accepts as many bytes
  constexpr std::size_t kFewArguments = 16;     // up to this number the list needs no allocation
  if (Status right = check(kernel, "kernel"); !right) return right;
  kiln_launch given{};
  if (Status right = read_struct(how, "how", given); !right) return right;
  const auto wanted = launch_of(given);
  if (!wanted) return wanted.error();
  if (count > kMaxArguments) return invalid_argument("argument_count, " + std::to_string(count) + ", is out of range");
  if (Status right = check_items(arguments, count, "arguments"); !right) return right;
  Argument few[kFewArguments];
  std::vector<Argument> many(count > kFewArguments ? count : 0);
  Argument* const list = count > kFewArguments ? many.data() : few;
  for (std::size_t i = 0; i < count; ++i) list[i] = {arguments[i].data, arguments[i].bytes};
  return kernel->kernel.launch_raw(*wanted, list, count);
}

}  // namespace
}  // namespace kiln::c

using kiln::Status;
using namespace kiln::c;

kiln_code kiln_session_get(kiln_session* session, const kiln_unit* unit, const char* entry, int64_t timeout_ns,
                           kiln_kernel** kernel, kiln_error** error) {
  kiln_get_options wait{};
  wait.timeout_ns = timeout_ns;
  return run_call(error, [&] { return get(session, unit, entry, wait, kernel); });
}

kiln_code kiln_session_get_ex(kiln_session* session, const kiln_unit* unit, const char* entry,
                              const kiln_get_options* wait, kiln_kernel** kernel, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(kernel, "kernel"); !there) return there;
    kiln_get_options given{};
    if (Status right = read_struct(wait, "wait", given); !right) return right;
    return get(session, unit, entry, given, kernel);
  });
}

int kiln_session_ready(kiln_session* session, const kiln_unit* unit, const char* entry) {
  int ready = 0;
  run_call(nullptr, [&]() -> Status {
    if (!is(session) || !is(unit)) return {};
    ready = session->session.handle(unit->unit, is_plausible_pointer(entry) ? entry : "").ready() ? 1 : 0;
    return {};
  });
  return ready;
}

kiln_code kiln_kernel_launch(const kiln_kernel* kernel, const kiln_launch* how, const kiln_argument* arguments,
                             size_t argument_count, kiln_error** error) {
  return run_call(error, [&] { return launch(kernel, how, arguments, argument_count); });
}

void* kiln_kernel_native(const kiln_kernel* kernel) { return is(kernel) ? kernel->kernel.native() : nullptr; }

kiln_code kiln_kernel_function(const kiln_kernel* kernel, void** function, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(function, "function"); !there) return there;
    if (Status right = check(kernel, "kernel"); !right) return right;
    const auto found = kernel->kernel.function();
    if (!found) return found.error();
    *function = *found;
    return {};
  });
}

kiln_code kiln_kernel_occupancy(const kiln_kernel* kernel, size_t shared_bytes, kiln_occupancy* occupancy,
                                kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(kernel, "kernel"); !right) return right;
    const auto found = kernel->kernel.occupancy(shared_bytes);
    if (!found) return found.error();
    kiln_occupancy given{};
    given.block_size = found->block_size;
    given.min_grid_size = found->min_grid_size;
    return write_struct(given, occupancy, "occupancy");
  });
}

const char* kiln_kernel_name(const kiln_kernel* kernel) { return is(kernel) ? kernel->kernel.name().c_str() : nullptr; }

void kiln_kernel_free(kiln_kernel* kernel) { destroy(kernel); }
