// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <kiln/session.hpp>

#include "gil.hpp"
#include "session/access.hpp"

namespace kiln::python {

/// A session shared by Python objects. The last one destroys it without holding the GIL, because that ends threads of
/// kiln, and one of them may be calling a Python event callback.
using SharedSession = std::shared_ptr<Session>;

SharedSession shared_session();
inline SessionImpl& impl_of(const SharedSession& session) { return detail::SessionAccess::state(*session)->impl(); }

/// The Python object of a session. Guarded by the GIL.
class SessionObject {
 public:
  explicit SessionObject(SharedSession session) : session_(std::move(session)) {}

  /// Returns the session; a copy, because another thread can close the object during a call. Raises InvalidArgument if
  /// it was closed.
  SharedSession get() const;
  /// Writes the trace, if there is one, and gives the session up. A second call has no effect. Raises InvalidArgument
  /// for the shared session.
  void close();
  bool is_closed() const { return session_ == nullptr; }

 private:
  SharedSession session_;
};

/// Calls a function with the session, without holding the GIL.
template <class Function>
auto with_session(const SessionObject& self, const Function& function) {
  const SharedSession used = self.get();
  return call_without_gil([&] { return function(*used); });
}

void bind_handle(nb::module_& module, nb::class_<SessionObject>& session);
void bind_external(nb::module_& module, nb::class_<SessionObject>& session);
void bind_resolve(nb::module_& module, nb::class_<SessionObject>& session);
void bind_compute(nb::module_& module, nb::class_<SessionObject>& session);

/// A kernel and the objects that keep it alive. Members are destroyed in reverse order, the session last.
struct KernelObject {
  SharedSession session;
  Unit unit;
  Kernel kernel;
  /// Null until a launch asks for them. Guarded by the GIL.
  mutable std::shared_ptr<const KernelParameters> parameters = nullptr;
};

/// Returns the kernel. If it is ready, returns at once without releasing the GIL. Otherwise requests it and waits as
/// `call_interruptible` does. `stream` is None, or the stream of the launch.
KernelObject get_kernel(const SharedSession& session, const Unit& unit, const std::string& entry,
                        std::optional<double> timeout, nb::handle stream);

/// Records a unit by its kind and label. In a notebook, a unit that is created again replaces the previous one.
void register_unit(const Unit& unit);
/// Removes the record of this unit, or of an equal one.
void forget_definition(const Unit& unit);
/// Returns the counts of a status in one line.
std::string counts_text(const SessionStatus& status);
/// Returns the status without the replaced units, and with the counts of the others.
SessionStatus without_replaced_units(const SessionStatus& status);

}  // namespace kiln::python
