#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kiln/session.hpp>

/// What the sources of the extension say to each other.
namespace kiln::python {

namespace nb = nanobind;

/// What `unit` or `units` may be in Python: one, or several.
Units units_of(nb::handle units);
/// What `target` may be: None, a Target, or its name.
std::optional<Target> target_of(nb::handle target);
/// Bytes as Python has them, and back.
nb::bytes bytes_of(const Bytes& bytes);
/// A path, or anything that has one.
std::string path_of(nb::handle path);

void bind_unit(nb::module_& module);
void bind_values(nb::module_& module);
void bind_stream(nb::module_& module);
void bind_kernel(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_session(nb::module_& module);

}  // namespace kiln::python
