// SPDX-License-Identifier: Apache-2.0
// Devices, status and metrics.
#include <utility>

#include "c/api_call.hpp"

namespace kiln::c {
namespace {

Status check_index(std::size_t index, std::size_t count) {
  if (index < count) return {};
  return invalid_argument("index " + std::to_string(index) + " is out of range for a count of " +
                          std::to_string(count));
}

}  // namespace
}  // namespace kiln::c

using kiln::Status;
using namespace kiln::c;

kiln_code kiln_devices_new(kiln_session* session, kiln_backend backend, kiln_devices** devices, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(devices, "devices"); !there) return there;
    if (Status right = check(session, "session"); !right) return right;
    const auto meant = backend_of(backend);
    if (!meant) return meant.error();
    auto found = session->session.devices(*meant);
    if (!found) return std::move(found).error();
    *devices = new kiln_devices(*std::move(found));
    return {};
  });
}

size_t kiln_devices_count(const kiln_devices* devices) { return is(devices) ? devices->devices.size() : 0; }

kiln_code kiln_devices_at(const kiln_devices* devices, size_t index, kiln_device* device, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(devices, "devices"); !right) return right;
    if (Status right = check_index(index, devices->devices.size()); !right) return right;
    const kiln::DeviceInfo& info = devices->devices[index];
    kiln_device given{};
    given.name = info.name.c_str();
    given.target = devices->targets[index].c_str();
    given.memory = info.memory;
    given.units = info.units;
    given.fp64_ratio = info.fp64_ratio;
    given.is_cpu = info.is_cpu ? 1 : 0;
    return write_struct(given, device, "device");
  });
}

void kiln_devices_free(kiln_devices* devices) { destroy(devices); }

kiln_code kiln_status_new(kiln_session* session, kiln_status** status, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(status, "status"); !there) return there;
    if (Status right = check(session, "session"); !right) return right;
    *status = new kiln_status(session->session.status());
    return {};
  });
}

kiln_code kiln_status_totals(const kiln_status* status, kiln_totals* totals, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(status, "status"); !right) return right;
    const kiln::SessionStatus& from = status->status;
    kiln_totals given{};
    given.submitted = from.submitted;
    given.compiled = from.compiled;
    given.cached = from.cached;
    given.pending = from.pending;
    given.failed = from.failed;
    given.cancelled = from.cancelled;
    given.wall_ms = from.wall_ms;
    return write_struct(given, totals, "totals");
  });
}

size_t kiln_status_count(const kiln_status* status) { return is(status) ? status->status.units.size() : 0; }

kiln_code kiln_status_at(const kiln_status* status, size_t index, kiln_unit_status* unit, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(status, "status"); !right) return right;
    if (Status right = check_index(index, status->status.units.size()); !right) return right;
    const kiln::UnitStatus& from = status->status.units[index];
    kiln_unit_status given{};
    given.unit = from.unit.c_str();
    given.kind = from.kind.c_str();
    given.target = from.target.c_str();
    given.state = static_cast<kiln_state>(from.state);
    given.origin = static_cast<kiln_origin>(from.origin);
    given.ms = from.ms;
    given.error = from.error.c_str();
    return write_struct(given, unit, "unit");
  });
}

void kiln_status_free(kiln_status* status) { destroy(status); }

size_t kiln_not_ready_count(const kiln_not_ready* not_ready) { return is(not_ready) ? not_ready->units.size() : 0; }

kiln_code kiln_not_ready_at(const kiln_not_ready* not_ready, size_t index, kiln_not_ready_unit* unit,
                            kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(not_ready, "not_ready"); !right) return right;
    if (Status right = check_index(index, not_ready->units.size()); !right) return right;
    const kiln::NotReady& from = not_ready->units[index];
    kiln_not_ready_unit given{};
    given.unit = from.unit.c_str();
    given.target = from.target.c_str();
    given.reason = from.reason.c_str();
    return write_struct(given, unit, "unit");
  });
}

void kiln_not_ready_free(kiln_not_ready* not_ready) { destroy(not_ready); }

static_assert(static_cast<int>(kiln::UnitStatus::State::Queued) == KILN_STATE_QUEUED);
static_assert(static_cast<int>(kiln::UnitStatus::State::Cancelled) == KILN_STATE_CANCELLED);
static_assert(static_cast<int>(kiln::Origin::Compiled) == KILN_ORIGIN_COMPILED);
static_assert(static_cast<int>(kiln::Origin::Remote) == KILN_ORIGIN_REMOTE);

const char* kiln_state_name(kiln_state state) {
  const int number = static_cast<int>(state);
  if (number < 0 || number > KILN_STATE_CANCELLED) return "unknown";
  return kiln::to_string(static_cast<kiln::UnitStatus::State>(number));
}

const char* kiln_origin_name(kiln_origin origin) {
  const int number = static_cast<int>(origin);
  if (number < 0 || number > KILN_ORIGIN_REMOTE) return "unknown";
  return kiln::to_string(static_cast<kiln::Origin>(number));
}

kiln_code kiln_session_metrics(kiln_session* session, kiln_string** text, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(text, "text"); !there) return there;
    if (Status right = check(session, "session"); !right) return right;
    *text = new kiln_string(session->session.metrics());
    return {};
  });
}

const char* kiln_string_data(const kiln_string* text) { return is(text) ? text->text.c_str() : nullptr; }

size_t kiln_string_size(const kiln_string* text) { return is(text) ? text->text.size() : 0; }

void kiln_string_free(kiln_string* text) { destroy(text); }
