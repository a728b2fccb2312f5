// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <kiln/runtime/runtime.hpp>

#include "errors.hpp"
#include "runtime_object.hpp"

namespace kiln::python {
namespace {

using OpenStage = ThreadBound<std::unique_ptr<runtime::Stage>>;

/// A stage of a run. The run ends it if the program did not. Not thread-safe.
struct StageObject {
  std::shared_ptr<OpenStage> stage;

  void end() const { stage->end(); }
};

/// A run of an operation, and its stages. Not thread-safe.
class DispatchObject {
 public:
  DispatchObject(runtime::Dispatch dispatch, const runtime::Operation& operation)
      : dispatch_(std::move(dispatch)), operation_(operation), number_(OperationScope::current()->dispatch) {}
  DispatchObject(DispatchObject&&) noexcept = default;
  DispatchObject& operator=(DispatchObject&&) = delete;
  ~DispatchObject() {
    if (dispatch_.is_of_this_thread()) end_stages();
  }

  void end() {
    if (dispatch_.is_of_this_thread()) end_stages();
    dispatch_.end();
  }
  std::string name() const { return operation_.name(); }
  const runtime::Decision& decision() const { return dispatch_.get().decision(); }
  /// Returns the index of the variant to run.
  std::size_t variant() const { return static_cast<std::size_t>(&dispatch_.get().variant() - operation_.begin()); }
  bool fall_back(const std::string& code, const std::string& message) {
    runtime::Dispatch& dispatch = dispatch_.get();
    end_stages();
    return call_without_gil([&] { return dispatch.fall_back({code_of(code), message, {}}); });
  }
  /// Returns None if the calling thread is in another operation, inside this one.
  std::optional<StageObject> begin_stage(const std::string& name, nb::handle stream, bool on_host) {
    runtime::Dispatch& dispatch = dispatch_.get();
    const OperationContext* const current = OperationScope::current();
    if (current == nullptr || current->dispatch != number_) return std::nullopt;
    const Stream* const waited =
        stream.is_none() ? nullptr : &cast_argument<StreamObject&>(stream, "stream must be a kiln.Stream").get();
    auto begun = std::make_unique<runtime::Stage>(dispatch, name.c_str(), waited);
    if (on_host) begun->on_host();
    auto stage = std::make_shared<OpenStage>(std::move(begun));
    stages_.erase(std::remove_if(stages_.begin(), stages_.end(), [](const auto& one) { return one->has_ended(); }),
                  stages_.end());
    stages_.push_back(stage);
    return StageObject{std::move(stage)};
  }

 private:
  static Code code_of(const std::string& name) {
    for (int code = 0; code <= static_cast<int>(Code::Internal); ++code) {
      if (name == to_string(static_cast<Code>(code))) return static_cast<Code>(code);
    }
    return Code::Internal;
  }
  // Call it only on the thread of the run. The callback of an event can begin another stage.
  void end_stages() {
    while (!stages_.empty()) {
      const std::shared_ptr<OpenStage> last = std::move(stages_.back());
      stages_.pop_back();
      last->end();
    }
  }

  ThreadBound<runtime::Dispatch> dispatch_;
  const runtime::Operation& operation_;
  std::uint64_t number_;
  std::vector<std::shared_ptr<OpenStage>> stages_;
};

using WorkflowObject = ThreadBound<runtime::Workflow>;

WorkflowObject begin_workflow(RuntimeObject& runtime, const std::string& name,
                              const std::vector<OperationObject>& operations, const runtime::DispatchRequest& request) {
  std::vector<const runtime::Operation*> all;
  for (const OperationObject& one : operations) all.push_back(one.operation);
  return WorkflowObject(unwrap(call_without_gil(
      [&] { return runtime::Workflow::begin(runtime.get(), name.c_str(), std::move(all), request); })));
}

}  // namespace

void bind_dispatch(nb::module_& module) {
  nb::class_<StageObject>(module, "DispatchStage", "A stage of a run.")
      .def("end", &StageObject::end, "Ends the stage. A second call has no effect.")
      .def("__repr__", [](const StageObject& self) {
        return self.stage->has_ended() ? "<kiln.DispatchStage, ended>" : "<kiln.DispatchStage>";
      });
  nb::class_<DispatchObject>(module, "Dispatch", "One run of an operation.")
      .def_prop_ro("decision", &DispatchObject::decision, "Where the operation runs, and why.")
      .def_prop_ro("variant", &DispatchObject::variant, "Index of the variant to run.")
      .def("fall_back", &DispatchObject::fall_back, nb::arg("code"), nb::arg("message"),
           "Reports that the variant failed. Returns True if the caller must run `variant` again.")
      .def("begin_stage", &DispatchObject::begin_stage, nb::arg("name"), nb::arg("stream").none(), nb::arg("on_host"),
           "Begins a stage of this run; None if the thread is in another operation.")
      .def("end", &DispatchObject::end, "Ends the run. A second call has no effect.")
      .def("__repr__", [](const DispatchObject& self) { return "<kiln.Dispatch of " + self.name() + ">"; });
  module.def(
      "_begin_dispatch",
      [](RuntimeObject& runtime, const OperationObject& operation, std::uint64_t rows, const std::string& residency,
         const std::optional<std::string>& device) {
        const runtime::DispatchRequest request = request_of(rows, residency, device);
        return DispatchObject(unwrap(call_without_gil([&] {
                                return runtime::Dispatch::begin(runtime.get(), *operation.operation, request);
                              })),
                              *operation.operation);
      },
      nb::arg("runtime"), nb::arg("operation"), nb::arg("rows"), nb::arg("residency"), nb::arg("device").none());
  nb::class_<WorkflowObject>(module, "WorkflowScope", "A scope in which the calling thread uses one decision.")
      .def_prop_ro(
          "decision", [](const WorkflowObject& self) { return self.get().decision(); },
          "The decision that all operations use.")
      .def(
          "next_chunk",
          [](const WorkflowObject& self, std::uint64_t rows, const std::string& residency,
             const std::optional<std::string>& device) {
            runtime::Workflow& workflow = self.get();
            const runtime::DispatchRequest request = request_of(rows, residency, device);
            unwrap(call_without_gil([&] { return workflow.next_chunk(request); }));
          },
          nb::arg("rows"), nb::arg("residency"), nb::arg("device").none(), "Begins another chunk and decides again.")
      .def("end", &WorkflowObject::end, "Ends the workflow. A second call has no effect.")
      .def("__repr__", [](const WorkflowObject& self) {
        return self.has_ended() ? "<kiln.WorkflowScope, ended>" : "<kiln.WorkflowScope>";
      });
  module.def(
      "_begin_workflow",
      [](RuntimeObject& runtime, const std::string& name, const std::vector<OperationObject>& operations,
         std::uint64_t rows, const std::string& residency, const std::optional<std::string>& device) {
        return begin_workflow(runtime, name, operations, request_of(rows, residency, device));
      },
      nb::arg("runtime"), nb::arg("name"), nb::arg("operations"), nb::arg("rows"), nb::arg("residency"),
      nb::arg("device").none());
}

}  // namespace kiln::python
