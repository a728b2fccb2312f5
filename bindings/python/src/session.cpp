#include <memory>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "errors.hpp"
#include "gate.hpp"
#include "session_object.hpp"
#include "stream_object.hpp"

namespace kiln::python {
namespace {

// Sessions outlive the interpreter's hold on whoever ends them; what they tell events to ends with it.
EventCallback listener(nb::object callback) {
  const auto end = [](nb::object* kept) {
    const Held held;
    if (held) delete kept;
  };
  const std::shared_ptr<nb::object> kept(new nb::object(std::move(callback)), end);
  return [kept](const Event& event) {
    const Held held;
    if (!held) return;
    try {
      (*kept)(event);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(*kept);
    } catch (const std::exception&) {
      // An event that cannot be shown to Python is not told; nothing of kiln's depends on it.
    }
  };
}

std::string setting_text(nb::handle value) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value) ? "true" : "false";
  return nb::cast<std::string>(nb::str(value));
}

SessionOptions options_of(nb::handle settings, nb::handle locked, nb::object on_event, bool record_undeclared,
                          bool metrics, nb::handle opencl) {
  SessionOptions options;
  if (!settings.is_none()) {
    for (auto [name, value] : nb::cast<nb::dict>(settings)) {
      options.settings[nb::cast<std::string>(name)] = setting_text(value);
    }
  }
  for (nb::handle name : nb::iter(locked)) options.locked.insert(nb::cast<std::string>(name));
  if (!on_event.is_none()) options.on_event = listener(std::move(on_event));
  options.record_undeclared = record_undeclared;
  options.metrics = metrics;
  if (!opencl.is_none()) {
    const auto both = nb::cast<nb::tuple>(opencl);
    if (both.size() != 2) throw nb::value_error("opencl is a pair of numbers: cl_context and cl_device_id");
    options.opencl = {reinterpret_cast<void*>(nb::cast<std::uintptr_t>(both[0])),
                      reinterpret_cast<void*>(nb::cast<std::uintptr_t>(both[1]))};
  }
  return options;
}

void end_session(Session* session) {
  const Released released;
  delete session;
}

SharedSession open_session(SessionOptions options) {
  return SharedSession(new Session(taken(Session::open(std::move(options)))), &end_session);
}

enum class Wish { Request, Cancel, Retry };

void tell(const SharedSession& session, Wish wish, nb::handle units, nb::handle target) {
  const Units list = units_of(units);
  const std::optional<Target> place = target_of(target);
  const Released released;
  switch (wish) {
    case Wish::Request:
      core_of(session).declare(list);
      return place ? session->request(list, *place) : session->request(list);
    case Wish::Cancel: return place ? session->cancel(list, *place) : session->cancel(list);
    case Wish::Retry: return place ? session->retry(list, *place) : session->retry(list);
  }
}

// A kernel, or None where it is still being made. For whoever waits by other means than a thread.
nb::object poll(const SharedSession& session, const Unit& unit, const std::string& entry) {
  const PythonCaller caller;
  auto kernel = without_interpreter([&]() -> Result<KernelObject> {
    Handle handle = session->handle(unit, entry);
    // More than nothing, so that it is made before what nobody waits for.
    Result<Kernel> got = handle.get(std::chrono::nanoseconds(1), caller);
    if (!got) return std::move(got).error();
    return KernelObject{session, unit, std::move(handle), *got};
  });
  if (!kernel && kernel.error().code == Code::TimedOut) return nb::none();
  return nb::cast(taken(std::move(kernel), &unit));
}

SessionStatus status_of(const SharedSession& session, bool all) {
  SessionStatus status = without_interpreter([&] { return session->status(); });
  return all ? status : newest_of(status);
}

void bind_levels(nb::class_<SessionObject>& session) {
  session
      .def(
          "artifact",
          [](const SessionObject& self, const Unit& unit, nb::handle target, std::optional<double> timeout) {
            const std::optional<Target> place = target_of(target);
            if (!place) throw nb::type_error("bytes are for a target: give one");
            const PythonCaller caller;
            return taken(waiting([&] { return self.session->artifact(unit, *place, limit_of(timeout), caller); }),
                         &unit);
          },
          nb::arg("unit"), nb::arg("target"), nb::arg("timeout") = nb::none(),
          "The bytes of a unit for a target: no device, no context and no driver needed.")
      .def(
          "get",
          [](const SessionObject& self, const Unit& unit, const std::string& entry, std::optional<double> timeout,
             nb::handle stream) { return get_kernel(self.session, unit, entry, timeout, stream); },
          nb::arg("unit"), nb::arg("entry") = "", nb::arg("timeout") = kUsualTimeout, nb::kw_only(),
          nb::arg("stream") = nb::none(),
          "The kernel: at once where it is ready, else after at most `timeout` seconds (None: no limit).")
      .def(
          "_poll",
          [](const SessionObject& self, const Unit& unit, const std::string& entry) {
            return poll(self.session, unit, entry);
          },
          nb::arg("unit"), nb::arg("entry") = "");
}

void bind_devices(nb::class_<SessionObject>& session) {
  session
      .def(
          "devices",
          [](const SessionObject& self, const std::string& kind) {
            return taken(without_interpreter([&] { return self.session->devices(kind); }));
          },
          nb::arg("kind"), "The devices of a kind, 'cuda' or 'opencl'. Opens the driver.")
      .def(
          "make_current",
          [](const SessionObject& self, const std::string& kind, std::size_t device) {
            taken(without_interpreter([&] { return self.session->make_current(kind, device); }));
          },
          nb::arg("kind"), nb::arg("device") = 0, "Makes a device's primary context current in this thread.")
      .def(
          "stream",
          [](const SessionObject& self, const std::string& kind) {
            return StreamObject(taken(without_interpreter([&] { return self.session->stream(kind); })), kind);
          },
          nb::arg("kind"), "A stream in the current context, for programs that have none.");
}

void bind_telling(nb::class_<SessionObject>& session) {
  session
      .def(
          "status", [](const SessionObject& self, bool all) { return status_of(self.session, all); }, nb::kw_only(),
          nb::arg("all") = false,
          "All units at one moment; in a notebook without those that were made anew since, unless `all`.")
      .def("metrics",
           [](const SessionObject& self) { return without_interpreter([&] { return self.session->metrics(); }); })
      .def("undeclared",
           [](const SessionObject& self) { return without_interpreter([&] { return self.session->undeclared(); }); })
      .def("write_trace",
           [](const SessionObject& self) { taken(without_interpreter([&] { return self.session->write_trace(); })); });
}

}  // namespace

SharedSession shared_session() {
  // Never destroyed, as the session itself.
  return SharedSession(SharedSession(), &Session::shared());
}

void bind_session(nb::module_& module) {
  nb::class_<SessionObject> session(module, "Session",
                                    "kiln in a program: asks the cache, compiles what is not there in the background, "
                                    "loads it, remembers it. Opening one opens no file and starts no thread.");
  session.def(
      "__init__",
      [](SessionObject* self, nb::handle settings, nb::object on_event, nb::handle locked, bool record_undeclared,
         bool metrics, nb::handle opencl) {
        new (self) SessionObject{
            open_session(options_of(settings, locked, std::move(on_event), record_undeclared, metrics, opencl))};
      },
      nb::arg("settings") = nb::none(), nb::arg("on_event") = nb::none(), nb::kw_only(),
      nb::arg("locked") = nb::make_tuple(), nb::arg("record_undeclared") = false, nb::arg("metrics") = false,
      nb::arg("opencl") = nb::none());
  session.def_static("_shared", [] { return SessionObject{shared_session()}; });
  const auto def_wish = [&](const char* name, Wish wish, const char* doc) {
    session.def(
        name,
        [wish](const SessionObject& self, nb::handle units, nb::handle target) {
          tell(self.session, wish, units, target);
        },
        nb::arg("units"), nb::arg("target") = nb::none(), doc);
  };
  def_wish("request", Wish::Request, "Says what will be needed. Returns in microseconds; works in the background.");
  def_wish("cancel", Wish::Cancel, "Takes a request back.");
  def_wish("retry", Wish::Retry, "Tries again what failed.");
  bind_levels(session);
  bind_devices(session);
  bind_telling(session);
  bind_handle(module, session);
  bind_foreign(module, session);
}

}  // namespace kiln::python
