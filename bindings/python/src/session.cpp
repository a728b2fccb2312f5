// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include <kiln/runtime/memory.hpp>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "session_object.hpp"
#include "stream_object.hpp"

namespace kiln::python {
namespace {

// A session can outlive the interpreter.
EventCallback listener(nb::object callback) {
  if (PyCallable_Check(callback.ptr()) == 0) raise_wrong_type("on_event must be a function", callback);
  return [kept = keep_for_threads(std::move(callback))](const Event& event) {
    const GilAcquire held;
    if (!held) return;
    try {
      (*kept)(event);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(*kept);
    } catch (const std::exception&) {
      // An event that cannot be converted to Python is dropped; kiln does not depend on its delivery.
    }
  };
}

// The receiver of the events of sessions without their own, set by kiln.log_events. Never destroyed; guarded by the
// GIL.
nb::object& log_function() {
  static auto& function = *new nb::object();
  return function;
}
std::atomic<bool> log_enabled{false};

void log_event(const Event& event) {
  const GilAcquire held;
  if (!held || !log_function().is_valid()) return;
  const nb::object function = log_function();
  try {
    function(event);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(function);
  } catch (const std::exception&) {
    // As in `listener`.
  }
}

void set_log_function(nb::object function) {
  log_enabled.store(!function.is_none(), std::memory_order_relaxed);
  log_function() = function.is_none() ? nb::object() : std::move(function);
}

SessionOptions logged_options() {
  SessionOptions options;
  options.on_event = &log_event;
  options.on_event_enabled = &log_enabled;
  return options;
}

std::string setting_text(nb::handle value) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value) ? "true" : "false";
  return nb::cast<std::string>(nb::str(value));
}

SessionOptions options_of(nb::handle settings, nb::handle locked, nb::object on_event, bool record_undeclared,
                          bool collect_metrics, nb::handle opencl) {
  SessionOptions options = logged_options();
  if (!settings.is_none()) {
    for (auto [name, value] : cast_argument<nb::dict>(settings, "settings must be a dict")) {
      options.settings[cast_argument<std::string>(name, "the name of a setting must be a string")] =
          setting_text(value);
    }
  }
  for (nb::handle name : nb::iter(locked)) {
    options.locked.insert(cast_argument<std::string>(name, "the name of a setting must be a string"));
  }
  if (!on_event.is_none()) {
    options.on_event = listener(std::move(on_event));
    options.on_event_enabled = nullptr;
  }
  options.record_undeclared = record_undeclared;
  options.collect_metrics = collect_metrics;
  if (!opencl.is_none()) {
    const char* const expected = "opencl must be a pair of numbers: cl_context and cl_device_id";
    const auto both = cast_argument<nb::tuple>(opencl, expected);
    if (both.size() != 2) throw nb::value_error(expected);
    options.opencl = {reinterpret_cast<void*>(cast_argument<std::uintptr_t>(both[0], expected)),
                      reinterpret_cast<void*>(cast_argument<std::uintptr_t>(both[1], expected))};
  }
  return options;
}

void end_session(Session* session) {
  const GilRelease released;
  delete session;
}

SharedSession open_session(SessionOptions options, nb::handle memory) {
  auto opened = memory.is_none()
                    ? Session::open(std::move(options))
                    : runtime::open_session(std::move(options), cast_argument<const runtime::Memory&>(
                                                                    memory, "memory must be a kiln.runtime.Memory"));
  return SharedSession(new Session(unwrap(std::move(opened))), &end_session);
}

enum class UnitAction { Request, Cancel, Retry };

void apply_action(const SharedSession& session, UnitAction action, nb::handle units, nb::handle target) {
  const Units list = units_of(units);
  const std::optional<Target> place = target_of(target);
  const GilRelease released;
  switch (action) {
    case UnitAction::Request:
      impl_of(session).kernels().declare(list);
      return place ? session->request(list, *place) : session->request(list);
    case UnitAction::Cancel: return place ? session->cancel(list, *place) : session->cancel(list);
    case UnitAction::Retry: return place ? session->retry(list, *place) : session->retry(list);
  }
}

void refresh(const SessionObject& self, nb::handle units) {
  const Units list = units_of(units);
  with_session(self, [&](Session& used) { used.refresh(list); });
}

void release(const SessionObject& self, nb::handle units) {
  const Units list = units_of(units);
  for (const Unit& unit : list) forget_definition(unit);
  with_session(self, [&](Session& used) { used.release(list); });
}

// Returns the limits of a poll. `first` is the time.monotonic_ns() of the first poll.
Wait poll_since(std::int64_t first) {
  return Wait::poll(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(first)));
}

// Returns a kernel, or None if it is still being compiled. For callers that wait without a thread.
nb::object poll(const SharedSession& session, const Unit& unit, const std::string& entry, std::int64_t first) {
  const PythonCaller caller;
  auto kernel = call_without_gil([&]() -> Result<KernelObject> {
    Result<Kernel> got = session->get(unit, entry, poll_since(first), caller);
    if (!got) return std::move(got).error();
    return KernelObject{session, unit, *std::move(got)};
  });
  if (!kernel && kernel.error().code == Code::TimedOut) return nb::none();
  return nb::cast(unwrap(std::move(kernel), &unit));
}

// Same, for the compiled code.
nb::object poll_artifact(const SharedSession& session, const Unit& unit, const Target& target, std::int64_t first) {
  const PythonCaller caller;
  Result<Artifact> artifact =
      call_without_gil([&] { return session->artifact(unit, target, poll_since(first), caller); });
  if (!artifact && artifact.error().code == Code::TimedOut) return nb::none();
  return nb::cast(unwrap(std::move(artifact), &unit));
}

SessionStatus status_of(const SharedSession& session, bool all) {
  SessionStatus status = call_without_gil([&] { return session->status(); });
  return all ? status : without_replaced_units(status);
}

std::string described_session(const SessionObject& self) {
  if (self.is_closed()) return "<kiln.Session, closed>";
  const SharedSession used = self.get();
  const SessionStatus status = status_of(used, false);
  return std::string("<kiln.Session") + (used == shared_session() ? ", shared: " : ": ") + counts_text(status) + ">";
}

void bind_levels(nb::class_<SessionObject>& session) {
  session
      .def(
          "artifact",
          [](const SessionObject& self, const Unit& unit, nb::handle target, std::optional<double> timeout) {
            const Target place = required_target(target);
            const SharedSession used = self.get();
            const PythonCaller caller;
            return unwrap(call_interruptible(limit_of(timeout),
                                             [&](Wait wait) { return used->artifact(unit, place, wait, caller); }),
                          &unit);
          },
          nb::arg("unit"), nb::arg("target"), nb::arg("timeout") = nb::none(),
          "Returns the compiled code of a unit for a target. Needs no device, context or driver.")
      .def(
          "get",
          [](const SessionObject& self, const Unit& unit, const std::string& entry, std::optional<double> timeout,
             nb::handle stream) { return get_kernel(self.get(), unit, entry, timeout, stream); },
          nb::arg("unit"), nb::arg("entry") = "", nb::arg("timeout") = nb::none(), nb::kw_only(),
          nb::arg("stream") = nb::none(),
          "Returns the kernel: at once if it is ready, otherwise after at most `timeout` seconds. None means no limit.")
      .def(
          "_poll",
          [](const SessionObject& self, const Unit& unit, const std::string& entry, std::int64_t first) {
            return poll(self.get(), unit, entry, first);
          },
          nb::arg("unit"), nb::arg("entry"), nb::arg("first"))
      .def(
          "_poll_artifact",
          [](const SessionObject& self, const Unit& unit, nb::handle target, std::int64_t first) {
            return poll_artifact(self.get(), unit, required_target(target), first);
          },
          nb::arg("unit"), nb::arg("target"), nb::arg("first"));
}

void bind_devices(nb::class_<SessionObject>& session) {
  session
      .def(
          "devices",
          [](const SessionObject& self, const std::string& backend) {
            const Backend meant = unwrap(parse_backend(backend));
            return unwrap(with_session(self, [&](Session& used) { return used.devices(meant); }));
          },
          nb::arg("backend"), "Returns the devices of a backend, 'cuda' or 'opencl'. Opens the driver.")
      .def(
          "make_current",
          [](const SessionObject& self, const std::string& backend, std::size_t device) {
            const Backend meant = unwrap(parse_backend(backend));
            unwrap(with_session(self, [&](Session& used) { return used.make_current(meant, device); }));
          },
          nb::arg("backend"), nb::arg("device") = 0,
          "Makes a device's primary context current in this thread. For OpenCL, selects the device for all threads.")
      .def(
          "stream",
          [](const SessionObject& self, const std::string& backend) {
            const Backend meant = unwrap(parse_backend(backend));
            return StreamObject(unwrap(with_session(self, [&](Session& used) { return used.stream(meant); })), meant);
          },
          nb::arg("backend"), "Creates a stream in the current context, for programs that have none.");
}

void bind_diagnostics(nb::class_<SessionObject>& session) {
  session
      .def(
          "status", [](const SessionObject& self, bool all) { return status_of(self.get(), all); }, nb::kw_only(),
          nb::arg("all") = false,
          "Returns a snapshot of all units; in a notebook without replaced units, unless `all` is true.")
      .def(
          "metrics",
          [](const SessionObject& self) { return with_session(self, [](Session& used) { return used.metrics(); }); },
          "Returns the status and the counts of events in the Prometheus text format.")
      .def(
          "undeclared",
          [](const SessionObject& self) { return with_session(self, [](Session& used) { return used.undeclared(); }); },
          "Returns the uses of units that were not requested before, if `record_undeclared` is set.")
      .def(
          "write_trace",
          [](const SessionObject& self) {
            unwrap(with_session(self, [](Session& used) { return used.write_trace(); }));
          },
          "Writes the trace file, if the setting `trace` names one. The end of the session writes it too.");
}

}  // namespace

SharedSession shared_session() {
  // Never destroyed: its work ends with the process.
  static auto& shared = *new SharedSession(new Session(unwrap(Session::open(logged_options()))), &end_session);
  return shared;
}

SharedSession SessionObject::get() const {
  if (session_ == nullptr) raise({Code::InvalidArgument, "the session was closed; open another kiln.Session", {}});
  return session_;
}

void SessionObject::close() {
  if (session_ == shared_session()) {
    raise({Code::InvalidArgument, "cannot close kiln.shared: it ends with the process; open a kiln.Session", {}});
  }
  const SharedSession closed = std::move(session_);
  if (closed != nullptr) unwrap(call_without_gil([&] { return closed->write_trace(); }));
}

void bind_session(nb::module_& module) {
  module.def("_set_log_function", &set_log_function, nb::arg("function").none());
  nb::class_<SessionObject> session(
      module, "Session",
      "The main interface of kiln: looks units up in the cache, compiles missing ones in the background, "
      "loads them and keeps them in memory. Opening one opens no file and starts no thread.");
  session.def(
      "__init__",
      [](SessionObject* self, nb::handle settings, nb::object on_event, nb::handle locked, bool record_undeclared,
         bool collect_metrics, nb::handle opencl, nb::handle memory) {
        new (self) SessionObject(open_session(
            options_of(settings, locked, std::move(on_event), record_undeclared, collect_metrics, opencl), memory));
      },
      nb::arg("settings") = nb::none(), nb::arg("on_event") = nb::none(), nb::kw_only(),
      nb::arg("locked") = nb::make_tuple(), nb::arg("record_undeclared") = false, nb::arg("collect_metrics") = false,
      nb::arg("opencl") = nb::none(), nb::arg("memory") = nb::none());
  session.def_static("_shared", [] { return SessionObject(shared_session()); });
  session
      .def("close", &SessionObject::close,
           "Ends the use of the session and writes its trace, if there is one. Its kernels, handles and streams stay "
           "usable, and the last of them ends what it does in the background. A second call has no effect.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](SessionObject& self, nb::handle, nb::handle, nb::handle) { self.close(); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none())
      .def("__repr__", &described_session);
  const auto def_request = [&](const char* name, UnitAction action, const char* doc) {
    session.def(
        name,
        [action](const SessionObject& self, nb::handle units, nb::handle target) {
          apply_action(self.get(), action, units, target);
        },
        nb::arg("units"), nb::arg("target") = nb::none(), doc);
  };
  def_request("request", UnitAction::Request,
              "Requests units that will be needed. Returns in microseconds; works in the background.");
  def_request("cancel", UnitAction::Cancel, "Cancels a request.");
  def_request("retry", UnitAction::Retry, "Retries failed units.");
  session.def("refresh", &refresh, nb::arg("units"),
              "Marks the included files of these units as possibly changed: the next get or request checks them.");
  session.def("release", &release, nb::arg("units"),
              "Removes all data of these units. Existing kernels and handles stay usable.");
  bind_levels(session);
  bind_devices(session);
  bind_diagnostics(session);
  bind_handle(module, session);
  bind_external(module, session);
  bind_resolve(module, session);
  bind_compute(module, session);
}

}  // namespace kiln::python
