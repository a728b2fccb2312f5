#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>

#include <kiln/runtime/runtime.hpp>

#include "base/mutex.hpp"
#include "runtime/measured.hpp"

namespace kiln::runtime {

/// From how many rows on a device is taken, and whether that was measured on this machine.
struct Crossover {
  std::uint64_t rows = kNever;
  bool measured = false;
};

/// What is known of this machine: asked for at the first need, and kept until it is forgotten. Any thread.
class Knowledge {
 public:
  explicit Knowledge(const RuntimeOptions& options) : options_(options) {}

  /// The device of a backend; an error says what is missing. Opens the driver.
  Result<DeviceInfo> device(Session& session, Backend backend);
  /// Whether everything that it compiles is ready; it is requested where it is not. Does not wait.
  bool is_warm(Session& session, const Needs* needs);

  /// Of a variant of a device that is here.
  Crossover crossover(Session& session, const Operation& operation, const Variant& variant);
  /// What `crossover` will say, unless the device turns out to be another than was measured. Opens no driver.
  Crossover likely_crossover(Session& session, const Operation& operation, const Variant& variant);

  /// Tells the session's listeners, of each message once.
  void complain(Session& session, const Event& event);
  void forget();

 private:
  std::shared_ptr<const Measured> measured(Session& session);

  const RuntimeOptions& options_;
  Mutex mutex_;
  std::uint64_t generation_ KILN_GUARDED_BY(mutex_) = 0;  // what was asked for before a `forget` is not kept after it
  std::map<Backend, Result<DeviceInfo>> devices_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<const Needs*> warm_ KILN_GUARDED_BY(mutex_);
  std::shared_ptr<const Measured> measured_ KILN_GUARDED_BY(mutex_);
  std::set<std::string> complained_ KILN_GUARDED_BY(mutex_);  // each once, and that is not forgotten
};

}  // namespace kiln::runtime
