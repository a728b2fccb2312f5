// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

namespace kiln::python {

// nanobind's function types are immutable and have no attribute that `inspect` looks for. Their dictionaries are
// reachable as for any other type.
void bind_signatures(nb::module_& module) {
  module.def(
      "_extend_type",
      [](nb::handle type, const char* name, nb::handle value) {
        const nb::object referents = nb::module_::import_("gc").attr("get_referents")(nb::getattr(type, "__dict__"));
        if (PyList_Size(referents.ptr()) != 1) return false;
        PyObject* const members = PyList_GetItem(referents.ptr(), 0);
        if (PyDict_Check(members) == 0) return false;
        if (PyDict_SetItemString(members, name, value.ptr()) != 0) throw nb::python_error();
        PyType_Modified(reinterpret_cast<PyTypeObject*>(type.ptr()));
        return true;
      },
      nb::arg("type"), nb::arg("name"), nb::arg("value"));
}

}  // namespace kiln::python
