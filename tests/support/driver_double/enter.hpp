#pragma once

#include "base/mutex.hpp"
#include "support/driver_double/model.hpp"

namespace kiln::test::driver {

/// Entries that work before Init.
enum class Before { Init, Nothing };

/// A driver is one for a process, as its functions have no handle to it.
struct Driver {
  Driver() { model.configure(nullptr); }

  Mutex mutex;
  Model model KILN_GUARDED_BY(mutex);
};
Driver& driver();

/// Whether a parent of this process called Init. A child of fork cannot use its parent's driver, and must not wait for
/// a lock that nobody there will give back.
bool in_forked_child();

/// Counts the call and says whether it fails at once.
DriverResult admit(Model& model, const char* entry, Before before);

/// The body of every driver function: `body(model)` under the lock, unless the call was told to fail.
template <class Body>
DriverResult enter(const char* entry, Body body, Before before = Before::Init) {
  if (in_forked_child()) return DriverResult::NotInitialized;
  Driver& one = driver();
  const MutexLock lock(one.mutex);
  const DriverResult result = admit(one.model, entry, before);
  return result == DriverResult::Success ? body(one.model) : result;
}

/// For functions that need a current context: `body(model, context)`.
template <class Body>
DriverResult enter_context(const char* entry, Body body) {
  return enter(entry, [&](Model& model) {
    Context context = nullptr;
    const DriverResult result = model.current(context);
    return result == DriverResult::Success ? body(model, context) : result;
  });
}

/// For functions on a stream, which may be one of the special ones: `body(model, stream, its state)`.
template <class Body>
DriverResult enter_stream(const char* entry, Stream given, Body body) {
  return enter(entry, [&](Model& model) {
    Stream stream = nullptr;
    const DriverResult result = model.resolve(given, stream);
    return result == DriverResult::Success ? body(model, stream, *model.streams.find(stream)) : result;
  });
}

/// A device's own pool, which is never looked into.
bool is_default_pool(MemoryPool pool);

/// What KILN_DOUBLE_* ask for beyond settings, at the first Init. Takes the lock itself.
void use_environment();

void note_initialised(Model& model, bool initialised);

/// For control functions, which never fail and are not counted.
void with_model(const std::function<void(Model&)>& body);

}  // namespace kiln::test::driver
