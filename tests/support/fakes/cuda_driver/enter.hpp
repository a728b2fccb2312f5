// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/mutex.hpp"
#include "support/fakes/cuda_driver/model.hpp"

namespace kiln::test::driver {

/// Whether an entry works before Init.
enum class Before { Init, Nothing };

/// The state of the driver. There is one per process, because the driver functions have no handle to it.
struct Driver {
  Driver() { model.configure(nullptr); }

  Mutex mutex;
  Model model KILN_GUARDED_BY(mutex);
};
Driver& driver();

/// Returns whether a parent of this process called Init. A child of fork cannot use its parent's driver and must not
/// wait for a lock that no thread of it will release.
bool in_forked_child();

/// Counts the call and returns whether it fails immediately.
DriverResult admit(Model& model, const char* entry, Before before);

/// The body of every driver function: calls `body(model)` with the lock held unless a fault is injected.
template <class Body>
DriverResult enter(const char* entry, Body body, Before before = Before::Init) {
  if (in_forked_child()) return DriverResult::NotInitialized;
  Driver& one = driver();
  const MutexLock lock(one.mutex);
  const DriverResult result = admit(one.model, entry, before);
  return result == DriverResult::Success ? body(one.model) : result;
}

/// The same for functions that need a current context: `body(model, context)`.
template <class Body>
DriverResult enter_context(const char* entry, Body body) {
  return enter(entry, [&](Model& model) {
    Context context = nullptr;
    const DriverResult result = model.current(context);
    return result == DriverResult::Success ? body(model, context) : result;
  });
}

/// The same for functions on a stream, which may be a special one: `body(model, stream, its state)`.
template <class Body>
DriverResult enter_stream(const char* entry, Stream given, Body body) {
  return enter(entry, [&](Model& model) {
    Stream stream = nullptr;
    const DriverResult result = model.resolve(given, stream);
    return result == DriverResult::Success ? body(model, stream, *model.streams.find(stream)) : result;
  });
}

/// Returns whether a pool is a device's default pool, whose contents are not modeled.
bool is_default_pool(MemoryPool pool);

/// Applies KILN_FAKE_DRIVER_* variables other than settings, at the first Init. Acquires the lock itself.
void use_environment();

void note_initialized(Model& model, bool initialized);

/// Calls `body` for control functions, which never fail and are not counted.
void with_model(const std::function<void(Model&)>& body);

}  // namespace kiln::test::driver
