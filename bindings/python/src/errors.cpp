// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <string>

namespace kiln::python {
namespace {

// A compiler log can quote a source that is not UTF-8.
nb::object text_of(const std::string& bytes) {
  PyObject* const text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::steal(text);
}

}  // namespace

void raise(const Error& error, const Unit* unit) {
  const nb::module_ errors = nb::module_::import_("kiln.errors");
  nb::object name = nb::none();
  nb::object source = nb::none();
  if (unit != nullptr && error.code == Code::CompileFailed) {
    name = text_of(unit->name());
    source = text_of(unit->full_source());
  }
  const nb::object made =
      errors.attr("make")(to_string(error.code), text_of(error.message), text_of(error.log), name, source);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw nb::python_error();
}

void raise_wrong_type(const char* expected, nb::handle given) {
  PyErr_Format(PyExc_TypeError, "%s, not %S", expected, nb::object(nb::getattr(given.type(), "__name__")).ptr());
  throw nb::python_error();
}

}  // namespace kiln::python
