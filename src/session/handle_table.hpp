// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/kernel.hpp>
#include <kiln/key.hpp>
#include <kiln/session.hpp>

#include "backends/device.hpp"
#include "base/concurrent_index.hpp"
#include "base/mutex.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// A kernel for one target. Constant except for what it keeps for events. Its KernelHandleState owns it.
struct detail::KernelState {
  std::shared_ptr<DeviceKernel> kernel;
  ArtifactKey key;  // key of its artifact
  std::string name;
  std::string unit;
  Target target;
  std::uint64_t flow = 0;
  Origin origin = Origin::Compiled;
  bool cpu_device = false;  // its device is a CPU
  EventEmitter emitter;

  /// Returns the number of threads per block that the driver suggests for a launch with this dynamic shared memory, for
  /// events; 0 if the driver does not report it. The driver is queried again when the shared memory changes.
  unsigned suggested_block(std::size_t shared_bytes) const;
  /// Returns the shared memory per block that the kernel declares, for events. The driver is queried once.
  std::size_t static_shared_bytes() const;

  mutable std::atomic<std::uint64_t> suggestion{0};  // dynamic shared memory in the upper half, threads in the lower
  mutable std::atomic<std::int64_t> static_shared{-1};
};

class HandleTable;

/// The state that all handles of one kernel share: the kernel for each target, and the kernels from before a refresh,
/// because callers may still use them. Lives as long as its table lists it or a `KernelHandle` or `Kernel` refers to
/// it. Thread-safe.
struct KernelHandleState : detail::ReadySlot, std::enable_shared_from_this<KernelHandleState> {
  KernelHandleState(HandleTable& owner, const Digest& unit, std::string which);
  ~KernelHandleState();
  KernelHandleState(const KernelHandleState&) = delete;
  KernelHandleState& operator=(const KernelHandleState&) = delete;

  /// Returns the kernel that was published for a target, or null if there is none or it must be checked first.
  const detail::KernelState* current_for(const Target& target);
  /// Returns the kernel of this artifact for a target if it was created, otherwise null.
  const detail::KernelState* find(const Target& target, const ArtifactKey& key) const KILN_REQUIRES(mutex);
  /// Sets the kernel that `get` returns from now on, unless units were refreshed since this epoch of the table. Applies
  /// to every device if `anywhere` is true.
  void publish(const detail::KernelState& kernel, std::uint64_t epoch, bool anywhere);
  /// Makes the next `get` check whether the kernel is still current.
  void refresh();
  /// Removes a kernel that the driver rejected late. It stays allocated because callers may still use it.
  void mark_rejected(const detail::KernelState& kernel);
  std::vector<ArtifactKey> keys();

  HandleTable& table;
  const Digest identity;  // identity of the unit
  const std::string entry;
  std::atomic<bool> is_listed{true};  // false once the table has removed it

  Mutex mutex;
  std::vector<std::unique_ptr<const detail::KernelState>> kernels KILN_GUARDED_BY(mutex);

 private:
  friend class HandleTable;
  std::vector<std::unique_ptr<const detail::KernelState>> rejected_ KILN_GUARDED_BY(mutex);
  std::vector<const detail::KernelState*> current_ KILN_GUARDED_BY(mutex);  // one per target
  // Links of the list of all live handles; guarded by the table's lock.
  KernelHandleState* next_ = nullptr;
  KernelHandleState* previous_ = nullptr;
  // Shared by its users, so that a `get` allocates nothing. Set while the table lists the handle and a `Session`
  // exists; guarded by the table's lock.
  std::shared_ptr<const detail::HandleOwner> owner_;
  std::shared_ptr<KernelHandleState> kept_;  // set in the child of a fork and never released: it belongs to the parent
};

/// The handles of a session by unit and entry. Its lock is a leaf: no code is called under it. Thread-safe.
class HandleTable {
 public:
  std::shared_ptr<KernelHandleState> get(const Digest& identity, const std::string& entry);
  /// A kernel that is ready on every device.
  struct ReadyKernel {
    const detail::KernelState* kernel = nullptr;
    std::shared_ptr<const detail::HandleOwner> owner;  // null if `get` must be used
  };
  ReadyKernel find_ready(const Digest& identity, const std::string& entry);
  /// Returns the owner that the table keeps for a handle, or null if there is none.
  std::shared_ptr<const detail::HandleOwner> owner_of(const KernelHandleState& handle);
  /// Keeps `owner` for its handle, unless the handle was removed or `is_closed` is true.
  void keep_owner(const std::shared_ptr<const detail::HandleOwner>& owner, const std::atomic<bool>& is_closed);
  /// Stops keeping owners, which refer to the session. The caller keeps the session alive.
  void drop_owners();
  /// Returns the current epoch. Read it before a unit is resolved and pass it to `KernelHandleState::publish`, so that
  /// a result from before a refresh is not published after it.
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  /// Starts a new epoch. Call it before the handles of units are refreshed.
  void begin_epoch() { epoch_.fetch_add(1, std::memory_order_acq_rel); }
  /// Returns all handles of a unit.
  std::vector<std::shared_ptr<KernelHandleState>> of_unit(const Digest& identity);
  /// Returns all handles of a unit and removes them. The next `get` creates new ones. Each is destroyed with its last
  /// `KernelHandle` and `Kernel`.
  std::vector<std::shared_ptr<KernelHandleState>> take_unit(const Digest& identity);

  /// See ProcessLifecycleListener. In the child no kernel of the parent is ready, and none is ever unloaded.
  void before_fork();
  void in_parent();
  void in_child();

 private:
  friend struct KernelHandleState;
  void link(KernelHandleState& handle);
  void unlink(KernelHandleState& handle);
  void show(KernelHandleState& handle);
  void hide(const KernelHandleState& handle);

  std::atomic<std::uint64_t> epoch_{0};
  Mutex mutex_;
  KernelHandleState* first_ KILN_GUARDED_BY(mutex_) = nullptr;
  std::unordered_multimap<Digest, std::shared_ptr<KernelHandleState>> handles_ KILN_GUARDED_BY(mutex_);
  ConcurrentIndex<KernelHandleState> index_ KILN_GUARDED_BY(mutex_);  // handles of ready kernels
};

/// The objects that a `KernelHandle` and its `Kernel`s keep alive. They are destroyed in reverse order, the session
/// last.
struct detail::HandleOwner {
  std::shared_ptr<Session::State> session;
  std::shared_ptr<KernelHandleState> handle;
};

}  // namespace kiln
