// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include <kiln/operation_context.hpp>

#include "bindings.hpp"
#include "enums.hpp"
#include "errors.hpp"

namespace kiln::python {
namespace {

/// A scope of the thread that created the object. Destroyed on another thread, it leaves the scope to its thread, which
/// still refers to it. Not thread-safe.
class ScopeObject {
 public:
  explicit ScopeObject(OperationContext work) : scope_(std::make_unique<OperationScope>(std::move(work))) {}
  ScopeObject(ScopeObject&&) noexcept = default;
  ScopeObject& operator=(ScopeObject&&) = delete;
  ~ScopeObject() {
    if (scope_ != nullptr && !scope_->is_of_this_thread()) (void)scope_.release();
  }

  /// A second call has no effect.
  void end() {
    if (scope_ != nullptr && !scope_->is_of_this_thread()) raise_wrong_thread();
    scope_.reset();
  }
  bool has_ended() const { return scope_ == nullptr; }

 private:
  std::unique_ptr<OperationScope> scope_;
};

std::string checked_name(std::string name, const char* what) {
  if (name.empty()) throw nb::value_error((std::string(what) + " must not be empty").c_str());
  return name;
}

}  // namespace

void raise_wrong_thread() {
  raise({Code::InvalidArgument, "the scope cannot end here: another thread began it; end it on that thread", {}});
}

Residency residency_of(const std::string& text) {
  return parse_enum<Residency>(text, "residency", {Residency::Unknown, Residency::Host, Residency::Device});
}

void bind_operation(nb::module_& module) {
  nb::class_<ScopeObject>(module, "OperationScope", "A scope of a thread, begun by kiln.operation, stage or purpose.")
      .def("end", &ScopeObject::end, "Ends the scope. A second call has no effect.")
      .def("__repr__", [](const ScopeObject& self) {
        return self.has_ended() ? "<kiln.OperationScope, ended>" : "<kiln.OperationScope>";
      });
  module.def(
      "_begin_operation",
      [](std::string name, std::uint64_t rows, const std::string& residency) {
        return ScopeObject(OperationContext::new_run(checked_name(std::move(name), "the name of an operation"), rows,
                                                     residency_of(residency)));
      },
      nb::arg("name"), nb::arg("rows"), nb::arg("residency"));
  module.def(
      "_begin_stage",
      [](std::string name) {
        return ScopeObject(OperationContext::in_stage(checked_name(std::move(name), "the name of a stage")));
      },
      nb::arg("name"));
  module.def(
      "_begin_purpose",
      [](const std::string& purpose) {
        return ScopeObject(OperationContext::with_purpose(parse_enum<Purpose>(
            purpose, "purpose", {Purpose::Input, Purpose::AllocationSize, Purpose::Materialize, Purpose::Trace})));
      },
      nb::arg("purpose"));
  module.def(
      "count_launch", [] { OperationScope::count_launch(); },
      "Records that this thread launched a kernel by other means than kiln.");
}

}  // namespace kiln::python
