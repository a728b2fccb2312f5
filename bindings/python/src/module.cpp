#include "bindings.hpp"
#include "gate.hpp"

#include <kiln/version.hpp>

namespace kiln::python {
namespace {

// What is alive when the interpreter ends is given back by the process; a list of it would worry people for nothing.
void bind_life(nb::module_& module) {
  nb::set_leak_warnings(false);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&close_gate));
  nb::module_::import_("os").attr("register_at_fork")(nb::arg("after_in_child") = nb::cpp_function(&reopen_gate));
  module.attr("__version__") = version();
}

}  // namespace
}  // namespace kiln::python

NB_MODULE(_kiln, module) {
  using namespace kiln::python;
  module.doc() = "kiln, as Python sees it; import kiln instead.";
  bind_unit(module);
  bind_values(module);
  bind_stream(module);
  bind_kernel(module);
  bind_plan(module);
  bind_session(module);
  bind_life(module);
}
