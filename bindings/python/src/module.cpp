// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"
#include "gil.hpp"
#include "stream_object.hpp"

#include <kiln/cuda.hpp>
#include <kiln/version.hpp>

namespace kiln::python {
namespace {

// Disables the leak warnings: the process frees everything that is alive when the interpreter ends.
void bind_life(nb::module_& module) {
  nb::set_leak_warnings(false);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&block_gil_reacquire));
  nb::module_::import_("os").attr("register_at_fork")(nb::arg("after_in_child") =
                                                          nb::cpp_function(&allow_gil_reacquire));
  module.attr("__version__") = version();
  module.attr("default_stream") = number_of(cuda::default_stream.native());
  module.attr("per_thread_stream") = number_of(cuda::per_thread_stream.native());
}

}  // namespace
}  // namespace kiln::python

NB_MODULE(_kiln, module) {
  using namespace kiln::python;
  module.doc() = "The extension module of kiln. Import kiln instead.";
  bind_unit(module);
  bind_bundle(module);
  bind_values(module);
  bind_stream(module);
  bind_kernel(module);
  bind_plan(module);
  bind_memory_tier(module);
  bind_session(module);
  bind_operation(module);
  bind_runtime(module);
  bind_signatures(module);
  bind_life(module);
}
