#pragma once

#include "support/driver_double/model.hpp"

namespace kiln::test::driver {

/// Entries that work before Init.
enum class Before { Init, Nothing };

/// Takes the one lock, counts the call and decides whether it fails at once. Null model: return `result`.
class Entered {
 public:
  Entered(const char* entry, Before before);
  ~Entered();
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  Model* model() { return model_; }
  DriverResult result() const { return result_; }

 private:
  bool locked_ = false;
  Model* model_ = nullptr;
  DriverResult result_ = DriverResult::Success;
};

/// The body of every driver function: `body(model)` under the lock, unless the call was told to fail.
template <class Body>
DriverResult enter(const char* entry, Body body, Before before = Before::Init) {
  Entered entered(entry, before);
  return entered.model() == nullptr ? entered.result() : body(*entered.model());
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

/// What KILN_DOUBLE_* ask for beyond settings, at the first Init. Takes the lock itself.
void use_environment();

void note_initialised(Model& model, bool initialised);

/// For control functions, which never fail and are not counted.
void with_model(const std::function<void(Model&)>& body);

}  // namespace kiln::test::driver
