// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/memory.hpp>

#include <cstdint>
#include <string>

#include "bindings.hpp"
#include "enums.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace kiln::python {
namespace {

using runtime::Memory;
using runtime::MemoryTier;

std::optional<MemoryTier> tier_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return parse_enum<MemoryTier>(*text, "tier",
                                {MemoryTier::Pool, MemoryTier::RetryingPool, MemoryTier::Managed, MemoryTier::Plain});
}

// Wraps the callback. An exception in it counts as the result False: no memory was freed.
std::function<bool(std::size_t)> callback_of(nb::object callback) {
  if (PyCallable_Check(callback.ptr()) == 0) raise_wrong_type("on_out_of_memory must be a function", callback);
  return [kept = keep_for_threads(std::move(callback))](std::size_t wanted) {
    const GilAcquire held;
    if (!held) return false;
    try {
      return nb::cast<bool>(nb::bool_((*kept)(wanted)));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(*kept);
    } catch (const std::exception&) {
      // A result without a truth value counts as false.
    }
    return false;
  };
}

nb::dict settings_of(const Memory& memory) {
  const Memory::Settings settings = call_without_gil([&] { return memory.settings(); });
  nb::dict made;
  made["tier"] = to_string(settings.tier);
  made["tier_source"] = to_string(settings.tier_source);
  made["limit"] = settings.limit;
  made["limit_source"] = to_string(settings.limit_source);
  made["retries"] = settings.retries;
  made["retries_source"] = to_string(settings.retries_source);
  return made;
}

nb::dict usage_of(const Memory& memory) {
  const Memory::Usage usage = call_without_gil([&] { return memory.usage(); });
  nb::dict made;
  made["bytes"] = usage.bytes;
  made["peak"] = usage.peak;
  made["retries"] = usage.retries;
  made["failures"] = usage.failures;
  return made;
}

}  // namespace

void bind_memory_tier(nb::module_& module) {
  nb::class_<Memory>(module, "Memory", "The CUDA memory of a session.")
      .def(
          "__init__",
          [](Memory* self, const std::optional<std::string>& tier, std::optional<std::uint64_t> limit,
             std::optional<unsigned> retries, nb::object on_out_of_memory, nb::handle driver) {
            runtime::MemoryOptions options;
            options.tier = tier_of(tier);
            options.limit = limit;
            options.retries = retries;
            if (!on_out_of_memory.is_none()) options.on_out_of_memory = callback_of(std::move(on_out_of_memory));
            if (!driver.is_none()) options.driver = path_of(driver);
            new (self) Memory(std::move(options));
          },
          nb::kw_only(), nb::arg("tier") = nb::none(), nb::arg("limit") = nb::none(), nb::arg("retries") = nb::none(),
          nb::arg("on_out_of_memory") = nb::none(), nb::arg("driver") = nb::none())
      .def(
          "tier", [](const Memory& self) { return call_without_gil([&] { return memory_tier_name(self); }); },
          "Returns the tier in use: 'pool', 'retrying_pool', 'managed' or 'plain'.")
      .def("settings", &settings_of, "Returns each setting with its source.")
      .def("usage", &usage_of,
           "Returns the bytes in use, their maximum so far, and the numbers of retries and failures.")
      .def(
          "set_tier",
          [](const Memory& self, const std::optional<std::string>& tier) {
            const std::optional<MemoryTier> to = tier_of(tier);
            unwrap(call_without_gil([&] { return self.set_tier(to); }));
          },
          nb::arg("tier").none(),
          "Sets the tier, or with None removes what was set here. Only before the first allocation.")
      .def(
          "set_limit",
          [](const Memory& self, std::optional<std::uint64_t> limit) {
            unwrap(call_without_gil([&] { return self.set_limit(limit); }));
          },
          nb::arg("limit").none(),
          "Sets the size limit of each device's pool in bytes; 0 means unlimited. Only before the first allocation.")
      .def(
          "set_retries",
          [](const Memory& self, std::optional<unsigned> retries) {
            unwrap(call_without_gil([&] { return self.set_retries(retries); }));
          },
          nb::arg("retries").none(), "Sets how often one allocation asks for memory. Only before the first allocation.")
      .def(
          "trim", [](const Memory& self) { unwrap(call_without_gil([&] { return self.trim(); })); },
          "Returns unused memory of the pools to the driver.")
      .def("__repr__", [](const Memory& self) {
        return "<kiln.runtime.Memory, tier " + call_without_gil([&] { return memory_tier_name(self); }) + ">";
      });
}

}  // namespace kiln::python
