#include <kiln/foreign.hpp>

#include <chrono>
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "errors.hpp"
#include "gate.hpp"
#include "memory.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

using Moment = std::chrono::steady_clock;

// How often a wait lets signal handlers run: a person who presses Ctrl-C must not notice.
constexpr std::chrono::milliseconds kBetweenSignals{40};

/// What Python has of another system's cache. The session ends last.
struct ForeignObject {
  SharedSession session;
  ForeignCache cache;
};

/// What Python has of a turn. Letting it go may take locks under which others ask for the interpreter.
struct TurnObject {
  explicit TurnObject(ForeignCache::Turn its_turn) : turn(std::move(its_turn)) {}
  TurnObject(TurnObject&&) noexcept = default;
  TurnObject& operator=(TurnObject&&) = delete;
  ~TurnObject() { release(); }
  void release() {
    if (!turn) return;
    const Released released;
    turn.reset();
  }

  std::optional<ForeignCache::Turn> turn;
};

std::string_view key_view(const nb::bytes& key) { return {key.c_str(), key.size()}; }

nb::object found_object(const std::optional<ForeignCache::Found>& found) {
  return found ? nb::object(bytes_of(found->bytes)) : nb::none();
}

nb::object get_foreign(const ForeignObject& self, const nb::bytes& key) {
  return found_object(without_interpreter([&] { return self.cache.get(key_view(key)); }));
}

// A signal handler that raises, as that of Ctrl-C does, ends the wait. A turn that came all the same is let go.
nb::tuple claim_foreign(const ForeignObject& self, const nb::bytes& key, std::optional<double> timeout) {
  bool raised = false;
  ForeignCache::Answer answer = [&] {
    Released released;
    std::function<bool()> over;
    if (is_main_thread()) {
      over = [&, next = Moment::now() + kBetweenSignals]() mutable {
        if (raised || Moment::now() < next) return raised;
        raised = !released.signals_are_fine();
        next = Moment::now() + kBetweenSignals;
        return raised;
      };
    }
    ForeignCache::Answer its = self.cache.get_or_claim(key_view(key), limit_of(timeout), over);
    if (raised) its.turn.reset();
    return its;
  }();
  if (raised) throw nb::python_error();
  nb::object turn = answer.turn ? nb::cast(TurnObject(std::move(*answer.turn))) : nb::none();
  return nb::make_tuple(found_object(answer.found), std::move(turn));
}

void put_foreign(const ForeignObject& self, const nb::bytes& key, nb::handle data, const std::string& name, double ms) {
  const HostSpan span(data, false);
  // A copy, because what is sent to other hosts outlives this call.
  const std::string_view text(static_cast<const char*>(span.data()), span.size());
  taken(without_interpreter([&] { return self.cache.put(key_view(key), Bytes::copy_of(text), name, ms); }));
}

void bind_turn(nb::module_& module) {
  nb::class_<TurnObject>(module, "Turn",
                         "The right to make what nobody has, among the processes of this host and, where leases are "
                         "configured, of the fleet. It ends with `release`, with this object, and with the process.")
      .def("release", &TurnObject::release)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](TurnObject& self, nb::handle, nb::handle, nb::handle) { self.release(); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none());
}

}  // namespace

void bind_foreign(nb::module_& module, nb::class_<SessionObject>& session) {
  bind_turn(module);
  nb::class_<ForeignObject>(module, "ForeignCache",
                            "What another system compiled, in kiln's tiers: checked when read, shared between "
                            "processes and hosts, shipped in bundles.")
      .def_prop_ro("system", [](const ForeignObject& self) { return self.cache.system(); })
      .def("get", &get_foreign, nb::arg("key"), "The bytes under a key; None where no tier has them.")
      .def("get_or_claim", &claim_foreign, nb::arg("key"), nb::arg("timeout") = 30.0,
           "(bytes, None); or (None, turn): make it, `put` it, release the turn; or (None, None): somebody else is "
           "still at it after the timeout, or turns cannot be had here: make it without one.")
      .def("put", &put_foreign, nb::arg("key"), nb::arg("data"), nb::arg("name") = "", nb::arg("ms") = 0.0,
           "Keeps it. `name` is what people and events call it, `ms` what it cost to make.")
      .def(
          "remove",
          [](const ForeignObject& self, const nb::bytes& key) {
            return without_interpreter([&] { return self.cache.remove(key_view(key)); });
          },
          nb::arg("key"), "Out of this user's own cache; False where it was not there.")
      .def("count",
           [](const ForeignObject& self) { return taken(without_interpreter([&] { return self.cache.count(); })); })
      .def("clear",
           [](const ForeignObject& self) { return taken(without_interpreter([&] { return self.cache.clear(); })); });
  session.def(
      "foreign",
      [](const SessionObject& self, const std::string& system) {
        return ForeignObject{self.session, self.session->foreign(system)};
      },
      nb::arg("system"), "The cache of another system that compiles, by the name that keeps its keys apart.");
}

}  // namespace kiln::python
