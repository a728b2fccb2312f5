// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "cache/claims.hpp"
#include "core/request_context.hpp"
#include "worker/worker_slots.hpp"

namespace kiln {

/// Acquires a claim on a request or on a takeover of it. While it waits for another holder, it notifies the context's
/// `WaitObserver`. Once a caller waits, it shows that to the holder, which may be waiting for a worker with background
/// priority, until the object is destroyed. Not thread-safe.
class ClaimWait {
 public:
  /// `slots` shows holders that a caller waits; null means that it is not shown.
  ClaimWait(const RequestKey& request, const WorkerSlots* slots, const Clock& clock, const RequestContext& context)
      : request_(request), slots_(slots), clock_(clock), context_(context) {}

  Claims::AcquireResult acquire(Claims& claims, const RequestKey& key, std::chrono::milliseconds wait);

 private:
  Claims::AcquireResult wait_visibly(Claims& claims, const RequestKey& key, std::chrono::milliseconds wait);

  const RequestKey& request_;
  const WorkerSlots* slots_;
  const Clock& clock_;
  const RequestContext& context_;
  WorkerSlots::SlotRequest awaited_;
};

}  // namespace kiln
