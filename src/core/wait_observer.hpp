// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln {

/// An observer of a thread that waits for another process doing the same work. The waiting thread compiles nothing, so
/// the owner can run another thread in its place. The waiting thread makes the calls. Thread-safe.
class WaitObserver {
 public:
  /// The wait of one thread, from construction to destruction.
  class Scope {
   public:
    explicit Scope(WaitObserver& emitter) : emitter_(emitter) { emitter_.begin_wait(); }
    ~Scope() { emitter_.end_wait(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WaitObserver& emitter_;
  };

 protected:
  ~WaitObserver() = default;

 private:
  virtual void begin_wait() noexcept = 0;
  virtual void end_wait() noexcept = 0;
};

}  // namespace kiln
