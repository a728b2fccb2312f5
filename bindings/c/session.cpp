// SPDX-License-Identifier: Apache-2.0
// Sessions, and level 1: bytes.
#include <utility>

#include <kiln/cccl.hpp>

#include "c/api_call.hpp"

namespace kiln::c {
namespace {

using ForEveryDevice = void (Session::*)(const Units&);
using ForTarget = void (Session::*)(const Units&, const Target&);

Result<Units> units_of(const kiln_session* session, const kiln_unit* const* units, std::size_t count) {
  if (Status right = check(session, "session"); !right) return std::move(right).error();
  if (Status right = check_items(units, count, "units"); !right) return std::move(right).error();
  Units asked;
  for (std::size_t i = 0; i < count; ++i) {
    if (Status right = check(units[i], "units[" + std::to_string(i) + "]"); !right) return std::move(right).error();
    asked.push_back(units[i]->unit);
  }
  return asked;
}

// Calls a member function of the session for units, for every device.
Status ask(kiln_session* session, const kiln_unit* const* units, std::size_t count, ForEveryDevice what) {
  const Result<Units> asked = units_of(session, units, count);
  if (!asked) return asked.error();
  (session->session.*what)(*asked);
  return {};
}

// Calls a member function of the session for units, each for its target of this name.
Status ask(kiln_session* session, const kiln_unit* const* units, std::size_t count, const char* target,
           ForEveryDevice for_every_device, ForTarget for_target) {
  if (target == nullptr) return ask(session, units, count, for_every_device);
  const Result<Units> given = units_of(session, units, count);
  if (!given) return given.error();
  const Units& asked = *given;
  std::vector<Target> targets;  // all targets are parsed before the first call, so that an error has no effect
  for (const Unit& unit : asked) {
    auto wanted = target_of(unit, target);
    if (!wanted) return std::move(wanted).error();
    targets.push_back(*std::move(wanted));
  }
  for (std::size_t i = 0; i < asked.size(); ++i) (session->session.*for_target)({asked[i]}, targets[i]);
  return {};
}

}  // namespace
}  // namespace kiln::c

using kiln::Session;
using kiln::Status;
using namespace kiln::c;

kiln_code kiln_session_open(const kiln_options* options, kiln_session** session, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(session, "session"); !there) return there;
    if (options != nullptr) {
      if (Status right = check(options, "options"); !right) return right;
    }
    auto opened = Session::open(options != nullptr ? options->options : kiln::SessionOptions{});
    if (!opened) return std::move(opened).error();
    *session = new kiln_session(*std::move(opened));
    return {};
  });
}

kiln_code kiln_session_shared(kiln_session** session, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(session, "session"); !there) return there;
    *session = new kiln_session(Session::shared());
    return {};
  });
}

void kiln_session_free(kiln_session* session) { destroy(session); }

kiln_code kiln_session_request(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                               const char* target, kiln_error** error) {
  return run_call(error, [&] { return ask(session, units, unit_count, target, &Session::request, &Session::request); });
}

kiln_code kiln_session_cancel(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                              const char* target, kiln_error** error) {
  return run_call(error, [&] { return ask(session, units, unit_count, target, &Session::cancel, &Session::cancel); });
}

kiln_code kiln_session_retry(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                             const char* target, kiln_error** error) {
  return run_call(error, [&] { return ask(session, units, unit_count, target, &Session::retry, &Session::retry); });
}

kiln_code kiln_session_refresh(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                               kiln_error** error) {
  return run_call(error, [&] { return ask(session, units, unit_count, &Session::refresh); });
}

kiln_code kiln_session_release(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                               kiln_error** error) {
  return run_call(error, [&] { return ask(session, units, unit_count, &Session::release); });
}

kiln_code kiln_session_ensure_warm(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                   int64_t timeout_ns, kiln_not_ready** not_ready, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(not_ready, "not_ready"); !there) return there;
    const auto asked = units_of(session, units, unit_count);
    if (!asked) return asked.error();
    const auto limit = limit_of(timeout_ns);
    if (!limit) return limit.error();
    *not_ready = new kiln_not_ready(
        kiln::WarmupPlan("plan").stage(*asked).ensure_warm(session->session, *limit, kUnnamedCaller));
    return {};
  });
}

kiln_code kiln_session_write_trace(kiln_session* session, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(session, "session"); !right) return right;
    return session->session.write_trace();
  });
}

kiln_code kiln_session_make_current(kiln_session* session, kiln_backend backend, size_t device, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(session, "session"); !right) return right;
    const auto meant = backend_of(backend);
    if (!meant) return meant.error();
    return session->session.make_current(*meant, device);
  });
}

kiln_code kiln_session_artifact(kiln_session* session, const kiln_unit* unit, const char* target, int64_t timeout_ns,
                                kiln_artifact** artifact, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(artifact, "artifact"); !there) return there;
    if (Status right = check(session, "session"); !right) return right;
    if (Status right = check(unit, "unit"); !right) return right;
    const auto wanted = target_of(unit->unit, target);
    if (!wanted) return wanted.error();
    const auto limit = limit_of(timeout_ns);
    if (!limit) return limit.error();
    auto made = session->session.artifact(unit->unit, *wanted, *limit, kUnnamedCaller);
    if (!made) return std::move(made).error();
    *artifact = new kiln_artifact(*std::move(made));
    return {};
  });
}

const void* kiln_artifact_data(const kiln_artifact* artifact) {
  return is(artifact) ? artifact->artifact.bytes.data() : nullptr;
}

size_t kiln_artifact_bytes(const kiln_artifact* artifact) { return is(artifact) ? artifact->artifact.bytes.size() : 0; }

kiln_form kiln_artifact_form(const kiln_artifact* artifact) {
  return static_cast<kiln_form>(is(artifact) ? static_cast<int>(artifact->artifact.target.form) : 0);
}
static_assert(static_cast<int>(kiln::Form::Cubin) == KILN_FORM_CUBIN);
static_assert(static_cast<int>(kiln::Form::Cccl) == KILN_FORM_CCCL);

const char* kiln_artifact_target(const kiln_artifact* artifact) {
  return is(artifact) ? artifact->target.c_str() : nullptr;
}

const char* kiln_artifact_symbol(const kiln_artifact* artifact, const char* entry) {
  if (!is(artifact) || !is_plausible_pointer(entry)) return nullptr;
  const std::string* symbol = artifact->artifact.symbol(entry);
  return symbol != nullptr ? symbol->c_str() : nullptr;
}

const char* kiln_artifact_entry(const kiln_artifact* artifact, size_t index) {
  if (!is(artifact) || index >= artifact->artifact.entries.size()) return nullptr;
  return artifact->artifact.entries[index].name.c_str();
}

const char* kiln_artifact_compiler(const kiln_artifact* artifact) {
  return is(artifact) ? artifact->artifact.metadata.compiler.c_str() : nullptr;
}

const char* kiln_artifact_log(const kiln_artifact* artifact) {
  return is(artifact) ? artifact->artifact.metadata.log.c_str() : nullptr;
}

double kiln_artifact_cost_ms(const kiln_artifact* artifact) {
  return is(artifact) ? artifact->artifact.metadata.cost_ms : 0;
}

void kiln_artifact_free(kiln_artifact* artifact) { destroy(artifact); }

kiln_code kiln_artifact_cccl(const kiln_artifact* artifact, kiln_cccl_info* info, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(artifact, "artifact"); !right) return right;
    const auto described = kiln::cccl::artifact_info(artifact->artifact);
    if (!described) return described.error();
    const auto library = kiln::cccl::library_bytes(artifact->artifact);
    if (!library) return library.error();
    kiln_cccl_info filled{};
    filled.data = library->data();
    filled.bytes = library->size();
    filled.policy_bytes = described->policy_bytes;
    filled.capability = static_cast<std::uint32_t>(described->capability);
    filled.kernel_count = static_cast<std::uint32_t>(artifact->artifact.entries.size());
    return write_struct(filled, info, "info");
  });
}
