// SPDX-License-Identifier: Apache-2.0
// Operations, stages and purposes, which events carry.
#include <utility>

#include "c/api_call.hpp"

namespace kiln::c {
namespace {

Result<Residency> residency_of(kiln_residency residency) {
  switch (static_cast<int>(residency)) {
    case KILN_RESIDENCY_UNKNOWN: return Residency::Unknown;
    case KILN_RESIDENCY_HOST: return Residency::Host;
    case KILN_RESIDENCY_DEVICE: return Residency::Device;
    default: return invalid_argument("operation->residency is not a value of kiln_residency");
  }
}

Result<Purpose> purpose_of(kiln_purpose purpose) {
  switch (static_cast<int>(purpose)) {
    case KILN_PURPOSE_UNSPECIFIED: return Purpose::Unspecified;
    case KILN_PURPOSE_INPUT: return Purpose::Input;
    case KILN_PURPOSE_ALLOCATION_SIZE: return Purpose::AllocationSize;
    case KILN_PURPOSE_MATERIALIZE: return Purpose::Materialize;
    case KILN_PURPOSE_TRACE: return Purpose::Trace;
    default: return invalid_argument("purpose is not a value of kiln_purpose");
  }
}

Status check_name(const char* name, const char* what) {
  if (Status there = check_text(name, what); !there) return there;
  if (*name == '\0') return invalid_argument(std::string(what) + " is empty");
  return {};
}

}  // namespace
}  // namespace kiln::c

using kiln::OperationContext;
using kiln::Status;
using namespace kiln::c;

kiln_code kiln_operation_begin(const kiln_operation* operation, kiln_scope** scope, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(scope, "scope"); !there) return there;
    kiln_operation given;
    if (Status right = read_struct(operation, "operation", given); !right) return right;
    if (Status right = check_name(given.name, "operation->name"); !right) return right;
    if (given.reserved != 0) return invalid_argument("operation->reserved is not 0");
    const auto residency = residency_of(given.residency);
    if (!residency) return residency.error();
    *scope = new kiln_scope(OperationContext::new_run(given.name, given.rows, *residency));
    return {};
  });
}

kiln_code kiln_stage_begin(const char* name, kiln_scope** scope, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(scope, "scope"); !there) return there;
    if (Status right = check_name(name, "name"); !right) return right;
    *scope = new kiln_scope(OperationContext::in_stage(name));
    return {};
  });
}

kiln_code kiln_purpose_begin(kiln_purpose purpose, kiln_scope** scope, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(scope, "scope"); !there) return there;
    const auto meant = purpose_of(purpose);
    if (!meant) return meant.error();
    *scope = new kiln_scope(OperationContext::with_purpose(*meant));
    return {};
  });
}

kiln_code kiln_scope_end(kiln_scope* scope, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(scope, "scope"); !right) return right;
    if (!scope->scope.is_of_this_thread()) {
      return invalid_argument("the scope cannot end here: another thread began it; end it on that thread");
    }
    destroy(scope);
    return {};
  });
}

void kiln_count_launch(void) { kiln::OperationScope::count_launch(); }
