// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kiln/session.hpp>

/// Declarations that the sources of the extension share.
namespace kiln::python {

namespace nb = nanobind;

/// Converts a Python `unit` or `units` argument: one unit or several.
Units units_of(nb::handle units);
/// Converts a Python `target` argument: None, a Target, or its name.
std::optional<Target> target_of(nb::handle target);
/// Same, without None.
Target required_target(nb::handle target);
/// Converts bytes to a Python object.
nb::bytes bytes_of(const Bytes& bytes);
/// Converts a path, or an object that has one.
std::string path_of(nb::handle path);

void bind_unit(nb::module_& module);
void bind_bundle(nb::module_& module);
void bind_values(nb::module_& module);
void bind_stream(nb::module_& module);
void bind_kernel(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_session(nb::module_& module);
void bind_operation(nb::module_& module);
void bind_memory_tier(nb::module_& module);
void bind_runtime(nb::module_& module);
void bind_signatures(nb::module_& module);

}  // namespace kiln::python
