// SPDX-License-Identifier: Apache-2.0
#include <kiln/external_cache.hpp>

#include <chrono>
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

/// The Python object of another system's cache. The session is destroyed last.
struct ExternalObject {
  SharedSession session;
  ExternalCache cache;
};

/// The Python object of a claim. Releasing it can take locks that other threads hold while they wait for the GIL.
struct CompileClaimObject {
  explicit CompileClaimObject(ExternalCache::CompileClaim its_claim) : claim(std::move(its_claim)) {}
  CompileClaimObject(CompileClaimObject&&) noexcept = default;
  CompileClaimObject& operator=(CompileClaimObject&&) = delete;
  ~CompileClaimObject() { release(); }
  void release() {
    if (!claim) return;
    const GilRelease released;
    claim.reset();
  }

  std::optional<ExternalCache::CompileClaim> claim;
};

std::string_view key_view(const nb::bytes& key) { return {key.c_str(), key.size()}; }

nb::object found_object(const std::optional<ExternalCache::Hit>& found) {
  return found ? nb::object(bytes_of(found->bytes)) : nb::none();
}

nb::object get_external(const ExternalObject& self, const nb::bytes& key) {
  return found_object(call_without_gil([&] { return self.cache.get(key_view(key)); }));
}

// Returns the bytes, the claim and the name of the tier that had the bytes. A signal handler that raises, such as that
// of Ctrl-C, ends the wait. A claim that was acquired nevertheless is released.
nb::tuple find_or_claim(const ExternalObject& self, const nb::bytes& key, std::optional<double> timeout) {
  bool raised = false;
  ExternalCache::LookupResult answer = [&] {
    GilRelease released;
    const std::function<bool()> keep_waiting = signal_check(released, raised);
    ExternalCache::LookupResult its = self.cache.get_or_claim(key_view(key), {limit_of(timeout), keep_waiting});
    if (raised) its.claim.reset();
    return its;
  }();
  if (raised) throw nb::python_error();
  nb::object claim = answer.claim ? nb::cast(CompileClaimObject(std::move(*answer.claim))) : nb::none();
  const char* const origin = answer.hit ? to_string(answer.hit->origin) : "";
  return nb::make_tuple(found_object(answer.hit), std::move(claim), origin);
}

nb::tuple claim_external(const ExternalObject& self, const nb::bytes& key, std::optional<double> timeout) {
  const nb::tuple answer = find_or_claim(self, key, timeout);
  return nb::make_tuple(answer[0], answer[1]);
}

void put_external(const ExternalObject& self, const nb::bytes& key, nb::handle data, const std::string& name,
                  double ms) {
  const HostSpan span(data, false);
  // Copies, because an upload to other hosts outlives this call.
  const std::string_view text(static_cast<const char*>(span.data()), span.size());
  unwrap(call_without_gil([&] { return self.cache.put(key_view(key), Bytes::copy_of(text), name, ms); }));
}

void bind_claim(nb::module_& module) {
  nb::class_<CompileClaimObject>(
      module, "CompileClaim",
      "The exclusive claim to compile a missing entry, among the processes of this host and, if leases are "
      "configured, of the fleet. It ends with `release`, with this object, and with the process.")
      .def("release", &CompileClaimObject::release, "Gives the claim up. A second call has no effect.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](CompileClaimObject& self, nb::handle, nb::handle, nb::handle) { self.release(); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none())
      .def("__repr__", [](const CompileClaimObject&) { return "<kiln.CompileClaim>"; });
}

}  // namespace

void bind_external(nb::module_& module, nb::class_<SessionObject>& session) {
  bind_claim(module);
  nb::class_<ExternalObject>(
      module, "ExternalCache",
      "A cache for code that another system compiled, in kiln's tiers: verified when read, shared between "
      "processes and hosts, shipped in bundles.")
      .def_prop_ro(
          "system", [](const ExternalObject& self) { return self.cache.system(); }, "Name of the system.")
      .def("get", &get_external, nb::arg("key"), "Returns the bytes of a key, or None if no tier has them.")
      .def("get_or_claim", &claim_external, nb::arg("key"), nb::arg("timeout") = 30.0,
           "Returns (bytes, None) on a hit; (None, claim) if the caller must compile, `put` and release the claim; "
           "(None, None) if another holder is still compiling after the timeout or claims are not available.")
      .def("_find_or_claim", &find_or_claim, nb::arg("key"), nb::arg("timeout"))
      .def("put", &put_external, nb::arg("key"), nb::arg("data"), nb::arg("name") = "", nb::arg("ms") = 0.0,
           "Stores an entry. `name` appears in events and listings; `ms` is the compile time.")
      .def(
          "remove",
          [](const ExternalObject& self, const nb::bytes& key) {
            return call_without_gil([&] { return self.cache.remove(key_view(key)); });
          },
          nb::arg("key"), "Removes an entry from this user's cache. Returns False if it does not exist.")
      .def(
          "count",
          [](const ExternalObject& self) { return unwrap(call_without_gil([&] { return self.cache.count(); })); },
          "Returns the number of entries in this user's cache.")
      .def(
          "clear",
          [](const ExternalObject& self) { return unwrap(call_without_gil([&] { return self.cache.clear(); })); },
          "Removes all entries of the system from this user's cache. Returns their number.")
      .def("__repr__",
           [](const ExternalObject& self) { return "<kiln.ExternalCache of '" + self.cache.system() + "'>"; });
  session.def(
      "external_cache",
      [](const SessionObject& self, const std::string& system) {
        const SharedSession used = self.get();
        return ExternalObject{used, used->external_cache(system)};
      },
      nb::arg("system"), "Returns the external cache of another compiling system; the name keeps its keys apart.");
}

}  // namespace kiln::python
