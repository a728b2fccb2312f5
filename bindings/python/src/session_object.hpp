#pragma once

#include <memory>
#include <string>

#include <kiln/session.hpp>

#include "gate.hpp"
#include "session/access.hpp"

namespace kiln::python {

/// A session as Python's objects share it. The last of them ends it without the interpreter: that ends threads of
/// kiln's, of which one may be telling Python of an event.
using SharedSession = std::shared_ptr<Session>;

SharedSession shared_session();
inline Core& core_of(const SharedSession& session) { return detail::SessionAccess::state(*session)->core(); }

/// What Python has of a session.
struct SessionObject {
  SharedSession session;
};
void bind_handle(nb::module_& module, nb::class_<SessionObject>& session);
void bind_foreign(nb::module_& module, nb::class_<SessionObject>& session);

/// Seconds that a `get` waits unless it is told.
inline constexpr double kUsualTimeout = 2;

/// A kernel, and what it lives by. Members end in the reverse order: the session last.
struct KernelObject {
  SharedSession session;
  Unit unit;
  Handle handle;
  Kernel kernel;
};

/// At once, and still holding the interpreter, where it is ready. Else it is asked for and waited for as `waiting`
/// does. `stream` is None, or where it will be launched.
KernelObject get_kernel(const SharedSession& session, const Unit& unit, const std::string& entry,
                        std::optional<double> timeout, nb::handle stream);

/// Every unit that was made, by what people call it: in a notebook a unit that is made again replaces the one before.
void note_definition(const Unit& unit);
/// Without the units that were replaced, and with the sums of the others.
SessionStatus newest_of(const SessionStatus& status);

}  // namespace kiln::python
